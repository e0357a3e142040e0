"""What the runs gave: one table for the terminal and one picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from rich.box import SIMPLE_HEAD
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from data import Split
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase
    from numpy.typing import NDArray


REFERENCE = "cpu"  # the backend whose losses the others' are compared with
REQUIRED = 0.97  # test accuracy

ROWS, COLUMNS = 6, 8  # of the grid of digits
# Okabe and Ito's palette, which people with colour blindness can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#CC79A7", "#56B4E9", "#000000")
RIGHT, WRONG = "#1a7f37", "#c1121f"
FAINT = "#666666"


@dataclass(frozen=True)
class Run:
    """One training on one backend.

    ``distribution``: that of the backend, with its version. ``seconds``: wall time of training and
    test, preparation of kernels included. ``losses``: the mean cross-entropy in nats before each
    step. ``predictions``: the digit read from each test image. ``accuracy``: 0 to 1.
    """

    backend: str
    distribution: str
    device: str
    seconds: float
    losses: NDArray[np.float64]
    predictions: NDArray[np.int64]
    accuracy: float

    def differences(self, runs: Sequence[Run]) -> NDArray[np.float64] | None:
        """Return how far each loss is from the reference's; None if this is it, or without it."""
        base = [run for run in runs if run.backend == REFERENCE and run is not self]
        return np.abs(self.losses - base[0].losses) if base else None


def table(runs: Sequence[Run]) -> Table:
    """Return one row per run."""
    result = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 0),
        caption="difference: the largest between the losses of one step, in nats\n"
        "seconds: of training and test; accuracy: of the test",
        caption_justify="left",
    )
    result.add_column("backend", style="bold")
    result.add_column("distribution", min_width=14, overflow="fold")
    result.add_column("device", min_width=12, overflow="fold")
    for heading in ("seconds", "accuracy", f"difference\nfrom {REFERENCE}"):
        result.add_column(heading, justify="right", no_wrap=True)
    for run in runs:
        colour = "green" if run.accuracy >= REQUIRED else "red"
        apart = run.differences(runs)
        result.add_row(
            run.backend,
            run.distribution,
            run.device,
            f"{run.seconds:.1f}",
            f"[{colour}]{run.accuracy:.2%}[/]",
            "-" if apart is None else f"{apart.max():.1e}",
        )
    return result


def picture(runs: Sequence[Run], split: Split, file: Path) -> None:
    """Write the loss curves and a grid of test digits as a PNG, making its folder if need be.

    The grid shows what the first run reads.
    """
    figure = Figure(figsize=(12.5, 6.4), layout="constrained", facecolor="white")
    halves: Any = figure.subfigures(1, 2, width_ratios=(1.0, 1.08), wspace=0.03)
    above, below = halves[0].subplots(2, 1, sharex=True, height_ratios=(1.5, 1.0))
    _losses(above, runs)
    _differences(below, runs)
    _digits(halves[1], runs, split)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110, format="png")


def _losses(axes: Axes, runs: Sequence[Run]) -> None:
    for index, run in enumerate(runs):
        # The curves lie on one another: each one is thinner than the one below it.
        axes.semilogy(
            np.arange(1, len(run.losses) + 1),
            run.losses,
            color=COLOURS[index % len(COLOURS)],
            linewidth=0.7 + 1.7 * (len(runs) - 1 - index),
            alpha=1.0 if index == len(runs) - 1 else 0.5,
            label=f"{run.backend}: {run.accuracy:.2%} of the test right",
        )
    axes.set_title("Loss of each training step", loc="left", fontweight="bold")
    axes.set_ylabel("cross-entropy (nats)")
    axes.legend(frameon=False, loc="lower left")
    _plain(axes)


def _differences(axes: Axes, runs: Sequence[Run]) -> None:
    axes.set_title(f"Distance from {REFERENCE}'s losses", loc="left", fontweight="bold")
    axes.set(xlabel="step", ylabel="nats", yscale="log")
    _plain(axes)
    for index, run in enumerate(runs):
        apart = run.differences(runs)
        if apart is None:
            continue
        kept = apart > 0  # a logarithm has no place for steps whose losses are equal
        most = f"at most {apart.max():.1e}" if kept.any() else "the same to the last bit"
        axes.plot(
            np.flatnonzero(kept) + 1,
            apart[kept],
            ".",
            markersize=3,
            color=COLOURS[index % len(COLOURS)],
            label=f"{run.backend}: {most}",
        )
    if axes.lines:
        axes.legend(facecolor="white", edgecolor="none", framealpha=0.9, markerscale=2.5)
    else:
        said = f"nothing to compare: only {', '.join(run.backend for run in runs)} was trained"
        axes.text(0.5, 0.5, said, transform=axes.transAxes, ha="center", color=FAINT)
        axes.set_yticks([])


def _digits(figure: FigureBase, runs: Sequence[Run], split: Split) -> None:
    read, truth = runs[0].predictions, split.test_labels
    right = read == truth
    grid = figure.subplots(ROWS, COLUMNS)
    # The wrong ones come first, each kind in the order of the images.
    for axes, index in zip(grid.flat, np.argsort(right, kind="stable"), strict=False):
        colour = RIGHT if right[index] else WRONG
        axes.imshow(split.test_images[index, :, :, 0], cmap="gray_r", vmin=0.0, vmax=1.0)
        text = f"{read[index]}" if right[index] else f"{read[index]}, is {truth[index]}"
        axes.set_title(text, color=colour, fontsize=11, fontweight="bold", pad=3)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set(color=colour, linewidth=1.0 if right[index] else 2.2)
    same = np.all([run.predictions == read for run in runs], axis=0)
    agreement = f" All backends agree on {same.sum()}." if len(runs) > 1 else ""
    figure.suptitle(
        f"Test digits as {runs[0].backend} reads them: {right.sum()} of {len(truth)} right",
        fontweight="bold",
    )
    said = f"Wrong ones (red) come first, then right ones (green).{agreement}"
    figure.supxlabel(said, fontsize=9, color=FAINT)


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
