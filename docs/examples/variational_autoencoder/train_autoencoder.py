"""Train a variational autoencoder on handwritten digits, without their labels.

The command prints the bound that each backend reaches on test images, and draws one picture. It
exits with 1 if that is no better than pixels that know nothing of one another.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import autoencoder
import autoencoder_picture
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import tensorplug as tp

sys.path.append(str(Path(__file__).parents[1] / "digits"))
import data  # the images are those of the example with the digits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


BATCH = 64


@dataclass(frozen=True)
class Run:
    """What one training gave: minus the bounds, in nats per image.

    ``losses``: the mean of each epoch. ``tests``: of test images, after each epoch.
    ``means``: where the test images are in the latent plane, [n, 2]. ``grid``: decoded images
    [rows, columns, 8, 8]. ``copies``: test images, encoded and decoded, [n, 8, 8].
    """

    losses: list[float]
    tests: list[float]
    means: NDArray[np.float32]
    grid: NDArray[np.float32]
    copies: NDArray[np.float32]


def flat(images: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return images as rows of pixels, [n, PIXELS]."""
    return images.reshape(len(images), autoencoder.PIXELS)


def train(split: data.Split, epochs: int, seed: int, description: str, console: Console) -> Run:
    """Train on the active backend; everything random comes from ``seed``."""
    for_weights, for_order, for_noise, for_tests = tp.random.split(tp.random.key(seed), 4)
    test = tp.asarray(flat(split.test_images))

    def objective(model: Any, images: tp.Tensor, *, key: tp.Tensor | None) -> tp.Tensor:
        # Validation has no key: there, the noise is the same after each epoch.
        return autoencoder.negative_elbo(model, images, for_tests if key is None else key)

    with Progress(console=console) as progress:
        task = progress.add_task(description, total=epochs)
        fitted = tp.train.fit(
            autoencoder.Autoencoder.init(for_weights),
            tp.train.batches(flat(split.train_images), BATCH, key=for_order, drop_last=True),
            objective,
            autoencoder.OPTIMIZER,
            epochs=epochs,
            key=for_noise,
            validation=[test],
            callbacks=[lambda _: progress.advance(task)],
            progress=False,
        )
    losses = [row["loss"] for row in fitted.history]
    tests = [row["validation_loss"] for row in fitted.history]
    return Run(losses, tests, *_look(fitted.model, test))


def _look(model: Any, test: tp.Tensor) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the means of test images, a grid of decoded images, and copies of test images."""
    means, _ = model.encode(test)
    # Points that are equally probable: quantiles of the normal distribution.
    quantiles = tp.special.ndtri(tp.linspace(0.03, 0.97, 12))
    across, down = tp.meshgrid(quantiles, tp.flip(quantiles))
    points = tp.stack([across, down], axis=-1).reshape((-1, 2))
    grid = tp.nn.sigmoid(model.decode(points)).numpy().reshape(12, 12, 8, 8)
    copies = tp.nn.sigmoid(model.decode(means)).numpy().reshape(-1, 8, 8)
    return means.numpy(), grid, copies


def independent(split: data.Split) -> float:
    """Return the test loss, in nats per image, of a model that knows only each pixel's mean."""
    mean = np.clip(flat(split.train_images).mean(axis=0), 1e-3, 1 - 1e-3)
    test = flat(split.test_images)
    return float(-np.mean(np.sum(test * np.log(mean) + (1 - test) * np.log(1 - mean), axis=1)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(arguments)
    console, split = Console(), data.split(data.load())
    limit = independent(split)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("backend", style="bold")
    for heading in ("seconds", "training loss", "test loss", "difference"):
        table.add_column(heading, justify="right")
    runs: list[Run] = []
    for name in options.backend or [tp.get_backend()]:
        with tp.use_backend(name):
            start = time.perf_counter()
            run = train(split, options.epochs, options.seed, f"{name:>8}", console)
            seconds = time.perf_counter() - start
        runs.append(run)
        apart = np.abs(np.subtract(run.losses, runs[0].losses)).max()
        shown = [f"{value:.2f}" for value in (seconds, run.losses[-1], run.tests[-1])]
        table.add_row(name, *shown, "-" if run is runs[0] else f"{apart:.1e}")
    console.print(table)
    console.print("losses: nats per image. difference: the largest between the losses of an epoch")
    console.print(f"pixels that know nothing of one another: {limit:.2f}", highlight=False)
    autoencoder_picture.draw(runs[0], split, limit, options.output)
    console.print(f"Picture: {options.output}", highlight=False)
    return 0 if all(run.tests[-1] < limit for run in runs) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--backend",
        action="append",
        metavar="NAME",
        help="may be repeated (default: the one that tensorplug chooses)",
    )
    parser.add_argument("--epochs", type=int, default=100, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--output", type=Path, default=Path("out/autoencoder.png"), metavar="PNG")
    return parser


if __name__ == "__main__":
    sys.exit(main())
