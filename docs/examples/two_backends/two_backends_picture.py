"""The picture: which backend worked when, some batches, and what the network learned from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline import Run, Work


COLORS = {"prepare": "#E69F00", "copy": "#009E73", "train": "#0072B2"}


def draw(work: Work, turns: Run, piped: Run, losses: list[float], file: Path) -> None:
    """Write the picture as a PNG, making its folder if need be."""
    figure = Figure(figsize=(10, 6.2), layout="constrained", facecolor="white")
    parts: Any = figure.subfigures(2, 1, height_ratios=(1.25, 1), hspace=0.03)
    lanes = parts[0].subplots(2, 1, sharex=True)
    images, curve = parts[1].subplots(1, 2, width_ratios=(1, 1.25))
    for axes, title, run in (
        (lanes[0], "One after the other", turns),
        (lanes[1], "The next batches are prepared meanwhile", piped),
    ):
        milliseconds = 1e3 * run.seconds / len(run.losses)
        axes.set_title(f"{title}: {milliseconds:.0f} ms a step", loc="left", fontweight="bold")
        _timeline(axes, work, run, turns.seconds)
    lanes[1].set_xlabel("seconds")
    legend = [Patch(color=color, label=what) for what, color in COLORS.items()]
    lanes[0].legend(
        handles=legend, frameon=False, loc="lower right", bbox_to_anchor=(1, 0.96), ncols=3
    )
    _images(images, work)
    _losses(curve, turns, losses)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130, format="png")


def _timeline(axes: Any, work: Work, run: Run, end: float) -> None:
    rows = {"prepare": 0, "copy": 0, "train": 1}
    for what, color in COLORS.items():
        spans = [span for span in run.spans if span.what == what]
        axes.broken_barh(
            [(span.start, span.end - span.start) for span in spans],
            (rows[what] - 0.38, 0.76),
            color=color,
            edgecolor="white",
            linewidth=0.8,
        )
    for span in run.spans:
        if span.what != "copy" and span.end - span.start > 0.018 * end:  # room for a number
            middle = (span.start + span.end) / 2
            axes.text(
                middle,
                rows[span.what],
                str(span.batch),
                ha="center",
                va="center",
                color="white" if span.what == "train" else "black",
                fontsize=9,
                clip_on=True,
            )
    names = [f"{work.places.prepare}: prepares", f"{work.places.train}: trains"]
    axes.set_yticks([0, 1], names)
    axes.set_ylim(1.5, -0.5)
    axes.set_xlim(0, end)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True, axis="x", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)


def _images(axes: Any, work: Work) -> None:
    pixels = work.prepare(0)[0].numpy()[:24, :, :, 0]
    rows = pixels.reshape(3, 8, *pixels.shape[1:]).transpose(0, 2, 1, 3)
    axes.imshow(rows.reshape(3 * pixels.shape[1], -1), cmap="gray_r", vmin=0, vmax=1)
    axes.set(xticks=[], yticks=[])
    axes.set_title("Batch 0: digits, distorted", loc="left", fontweight="bold")


def _losses(axes: Any, turns: Run, losses: list[float]) -> None:
    axes.plot(np.arange(len(losses)), losses, color=COLORS["train"], label="pipeline")
    axes.plot(
        np.arange(len(turns.losses)), turns.losses, "o", color="#D55E00", ms=4, label="in turn"
    )
    axes.set(xlabel="batch", ylim=(0, None))
    axes.set_title("Loss: the same either way", loc="left", fontweight="bold")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
