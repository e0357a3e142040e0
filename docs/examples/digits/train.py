"""Train a small convolutional network on handwritten digits, on every installed backend.

Every backend gets the same weights and the same batches, drawn once with NumPy. The command
prints one table, writes one picture, and exits with 1 when a backend reads fewer than 97 % of
the test images right or when a backend that was asked for cannot be used.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import data
import model
import numpy as np
import report
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from data import Split
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Job:
    """What to train: everything that is random is drawn already.

    ``weights``: the initial ones. ``orders``: for each epoch, the order of the training images.
    """

    split: Split
    weights: dict[str, NDArray[np.float32]]
    orders: list[NDArray[np.intp]]

    @property
    def steps(self) -> int:
        """The number of training steps in all."""
        return sum(len(data.batches(order)) for order in self.orders)


def prepare(epochs: int, seed: int) -> Job:
    """Draw the initial weights and the order of the images from one generator."""
    split = data.split(data.load())
    generator = np.random.default_rng(seed)
    weights = model.initial_weights(generator)
    orders = [generator.permutation(len(split.train_labels)) for _ in range(epochs)]
    return Job(split, weights, orders)


def train(
    job: Job, after_step: Callable[[int, float], None]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Train on the active backend, then read the test images.

    Args:
        job: what to train.
        after_step: called after each step with the epoch, from 1, and the step's loss.

    Returns:
        The loss of each step, and the digit read from each test image.

    """
    split = job.split
    weights = tp.tree_map(tp.asarray, job.weights)
    state = model.OPTIMIZER.init(weights)
    losses = []
    for epoch, order in enumerate(job.orders, start=1):
        for batch in data.batches(order):
            images = tp.asarray(split.train_images[batch])
            labels = tp.asarray(split.train_labels[batch])
            loss, weights, state = model.step(weights, state, images, labels)
            losses.append(float(loss.item()))
            after_step(epoch, losses[-1])
    read = model.predict(weights, tp.asarray(split.test_images))
    return np.array(losses), read.numpy().astype(np.int64)


def run_on(name: str, job: Job, progress: Progress) -> report.Run:
    """Train on one backend, showing how far it is."""
    epochs = len(job.orders)
    task = progress.add_task(name, total=job.steps, epoch=0, epochs=epochs, loss=float("nan"))

    def after_step(epoch: int, loss: float) -> None:
        progress.update(task, advance=1, epoch=epoch, loss=loss)

    with tp.use_backend(name):
        start = time.perf_counter()
        losses, read = train(job, after_step)
        seconds = time.perf_counter() - start
        device = tp.describe_device()
    info = next(backend for backend in tp.backends() if backend.name == name.partition(":")[0])
    return report.Run(
        backend=name,
        distribution=info.distribution,
        version=info.version,
        device=device,
        epochs=epochs,
        seconds=seconds,
        losses=losses,
        predictions=read,
        accuracy=float(np.mean(read == job.split.test_labels)),
    )


def wanted(given: Sequence[str]) -> tuple[list[str], bool]:
    """Return the backends to train on, and whether somebody named them.

    The one that the others are compared with comes first.
    """
    asked = os.environ.get("TENSORPLUG_BACKEND", "")
    from_environment = [part.strip() for part in asked.split(",") if part.strip()]
    named = list(given) or [name for name in from_environment if name != "auto"]
    # With nothing installed we ask for the reference, so that the error says what to install.
    installed = [backend.name for backend in tp.backends() if backend.state != "disabled"]
    names = named or installed or [report.REFERENCE]
    ordered = sorted(dict.fromkeys(names), key=lambda name: name != report.REFERENCE)
    return ordered, bool(named)


def usable(names: Sequence[str], console: Console, *, named: bool) -> tuple[list[str], bool]:
    """Open each backend; return those that opened, and whether the others may be left out.

    Missing hardware is no failure unless somebody asked for that very backend.
    """
    found, fine = [], True
    for name in names:
        try:
            with tp.use_backend(name):
                tp.describe_device()
        except tp.errors.TensorplugError as error:
            missing_hardware = isinstance(error, tp.errors.BackendUnavailableError)
            fine = fine and missing_hardware and not named
            console.print(f"{name} is left out: {error}", style="yellow", markup=False)
        else:
            found.append(name)
    return found, fine


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(arguments)
    # A kernel that quietly ran on another backend would make the comparison worthless.
    os.environ.setdefault("TENSORPLUG_FALLBACK", "error")
    console = Console()
    asked, named = wanted(options.backend)
    names, fine = usable(asked, console, named=named)
    if not names:
        console.print("No backend could be used.", style="red")
        return 1
    job = prepare(options.epochs, options.seed)
    columns = (
        TextColumn("{task.description:>8}"),
        BarColumn(),
        TextColumn("epoch {task.fields[epoch]:>2}/{task.fields[epochs]}"),
        TextColumn("loss {task.fields[loss]:.4f}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        runs = [run_on(name, job, progress) for name in names]
    console.print(report.table(runs))
    report.picture(runs, job.split, options.output)
    console.print(f"Picture: {options.output}", highlight=False)
    short = [run.backend for run in runs if run.accuracy < report.REQUIRED]
    if short:
        console.print(f"Under {report.REQUIRED:.0%}: {', '.join(short)}", style="red")
    return 0 if fine and not short else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--backend",
        action="append",
        default=[],
        metavar="NAME",
        help="train on this backend; may be repeated (default: TENSORPLUG_BACKEND, else all)",
    )
    parser.add_argument("--epochs", type=_positive, default=12, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--output", type=Path, default=Path("out/digits.png"), metavar="FILE.png")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


if __name__ == "__main__":
    sys.exit(main())
