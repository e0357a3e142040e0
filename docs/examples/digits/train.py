"""Train a small convolutional network on handwritten digits, on every installed backend.

Every backend gets the same weights and the same batches, which come from one key. The command
prints one table, writes one picture, and exits with 1 when a backend reads fewer than 97 % of
the test images right or when a backend that was asked for cannot be used.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import data
import model
import numpy as np
import report
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

BATCH = 32  # images per step


def train(split: data.Split, epochs: int, seed: int, callbacks: Any = ()) -> tp.train.Fit:
    """Train on the active backend; everything random comes from ``seed``."""
    for_weights, for_order = tp.random.split(tp.random.key(seed))
    images = split.train_images, split.train_labels
    return tp.train.fit(
        model.network(for_weights),
        tp.train.batches(images, BATCH, key=for_order, drop_last=True),
        tp.train.supervised(model.loss),
        model.OPTIMIZER,
        epochs=epochs,
        metrics={"losses": model.EachLoss()},
        callbacks=callbacks,
        progress=False,
    )


def losses(fitted: tp.train.Fit) -> NDArray[np.float64]:
    """Return the loss of each step."""
    return np.concatenate([row["losses"] for row in fitted.history])


def read(network: Any, images: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the digit [n] that scores highest for each image."""
    found: tp.Tensor = network(images).argmax(axis=-1)
    return found.numpy().astype(np.int64)


def run_on(name: str, split: data.Split, epochs: int, seed: int, progress: Progress) -> report.Run:
    """Train on one backend, showing how far it is, then read the test images."""
    task = progress.add_task(name, total=epochs, loss=float("nan"))

    def after_epoch(epoch: tp.train.Epoch) -> None:
        progress.update(task, advance=1, loss=epoch.row["loss"])

    with tp.use_backend(name):
        start = time.perf_counter()
        fitted = train(split, epochs, seed, [after_epoch])
        if len(fitted.history) < epochs:  # Ctrl-C, after which fit returns what there is
            raise KeyboardInterrupt
        predictions = read(fitted.model, split.test_images)
        seconds = time.perf_counter() - start
        device = tp.describe_device()
    info = next(backend for backend in tp.backends() if backend.name == name.partition(":")[0])
    return report.Run(
        backend=name,
        distribution=f"{info.distribution}\n{info.version}",
        device=device,
        seconds=seconds,
        losses=losses(fitted),
        predictions=predictions,
        accuracy=float(np.mean(predictions == split.test_labels)),
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
    split = data.split(data.load())
    columns = (
        TextColumn("{task.description:>8}"),
        BarColumn(),
        TextColumn("epoch {task.completed:>2}/{task.total}"),
        TextColumn("loss {task.fields[loss]:.4f}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        runs = [run_on(name, split, options.epochs, options.seed, progress) for name in names]
    console.print(report.table(runs))
    report.picture(runs, split, options.output)
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
    parser.add_argument("--epochs", type=int, default=12, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--output", type=Path, default=Path("out/digits.png"), metavar="FILE.png")
    return parser


if __name__ == "__main__":
    sys.exit(main())
