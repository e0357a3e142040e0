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

    ``losses``: float64, the mean cross-entropy in nats before each step.
    ``predictions``: the digit read from each test image. ``accuracy``: 0 to 1.
    ``seconds``: wall time of training and test, preparation of kernels included.
    """

    backend: str
    distribution: str
    version: str
    device: str
    epochs: int
    seconds: float
    losses: NDArray[np.float64]
    predictions: NDArray[np.int64]
    accuracy: float


def reference(runs: Sequence[Run]) -> Run | None:
    """Return the run that the others are compared with, if there was one."""
    return next((run for run in runs if run.backend == REFERENCE), None)


def difference(run: Run, other: Run) -> NDArray[np.float64]:
    """Return the distance between the two runs' losses at each step, in nats."""
    return np.abs(run.losses - other.losses)


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
    farthest = f"difference\nfrom {REFERENCE}"
    for heading in ("epochs", "seconds", "accuracy", farthest):
        result.add_column(heading, justify="right", no_wrap=True)
    base = reference(runs)
    for run in runs:
        colour = "green" if run.accuracy >= REQUIRED else "red"
        result.add_row(
            run.backend,
            f"{run.distribution}\n{run.version}",
            run.device,
            str(run.epochs),
            f"{run.seconds:.1f}",
            f"[{colour}]{run.accuracy:.2%}[/]",
            "-" if base in (None, run) else f"{difference(run, base).max():.1e}",
        )
    return result


def picture(runs: Sequence[Run], split: Split, file: Path) -> None:
    """Write the loss curves and a grid of test digits as a PNG, making its folder if need be."""
    figure = Figure(figsize=(12.5, 6.4), layout="constrained", facecolor="white")
    halves: Any = figure.subfigures(1, 2, width_ratios=(1.0, 1.08), wspace=0.03)
    left, right = halves
    above, below = left.subplots(2, 1, sharex=True, height_ratios=(1.5, 1.0))
    _losses(above, runs)
    _differences(below, runs)
    _digits(right, reference(runs) or runs[0], runs, split)
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
    axes.set_xlabel("step")
    _plain(axes)
    base = reference(runs)
    if base is None or len(runs) == 1:
        said = f"nothing to compare: only {', '.join(run.backend for run in runs)} was trained"
        axes.text(0.5, 0.5, said, transform=axes.transAxes, ha="center", color=FAINT)
        axes.set_yticks([])
        return
    axes.set_yscale("log")
    axes.set_ylabel("nats")
    for index, run in enumerate(runs):
        if run is base:
            continue
        apart = difference(run, base)
        # A logarithm has no place for steps whose losses are equal.
        kept = apart > 0
        most = f"at most {apart.max():.1e}" if kept.any() else "the same to the last bit"
        axes.plot(
            np.flatnonzero(kept) + 1,
            apart[kept],
            ".",
            markersize=3,
            color=COLOURS[index % len(COLOURS)],
            label=f"{run.backend}: {most}",
        )
    axes.legend(facecolor="white", edgecolor="none", framealpha=0.9, markerscale=2.5)


def _digits(figure: FigureBase, run: Run, runs: Sequence[Run], split: Split) -> None:
    truth = split.test_labels
    wrong = np.flatnonzero(run.predictions != truth)
    others = np.flatnonzero(run.predictions == truth)
    shown = np.concatenate([wrong, others])[: ROWS * COLUMNS]
    grid = figure.subplots(ROWS, COLUMNS)
    for axes, index in zip(grid.flat, shown, strict=True):
        read, meant = int(run.predictions[index]), int(truth[index])
        colour = RIGHT if read == meant else WRONG
        axes.imshow(split.test_images[index, :, :, 0], cmap="gray_r", vmin=0.0, vmax=1.0)
        text = str(read) if read == meant else f"{read}, is {meant}"
        axes.set_title(text, color=colour, fontsize=11, fontweight="bold", pad=3)
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set(color=colour, linewidth=1.0 if read == meant else 2.2)
    same = np.all([item.predictions == run.predictions for item in runs], axis=0)
    agreement = f" All backends agree on {int(same.sum())}." if len(runs) > 1 else ""
    figure.suptitle(
        f"Test digits as {run.backend} reads them: {len(others)} of {len(truth)} right",
        fontweight="bold",
    )
    figure.supxlabel(
        f"Wrong ones (red) come first, then right ones (green).{agreement}",
        fontsize=9,
        color=FAINT,
    )


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
