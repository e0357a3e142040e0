"""The picture: filters, the spectrum and what it leaves, and the restoration of a photo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle

if TYPE_CHECKING:
    from pathlib import Path

    from filter_image import Run


BLUE = "#0072B2"


def draw(run: Run, cutoff: float, file: Path) -> None:
    """Write the picture as a PNG, making its folder if need be."""
    figure = Figure(figsize=(10, 8.2), layout="constrained", facecolor="white")
    axes: Any = figure.subplots(3, 4)
    decibels = {name: f"{value:.1f} dB" for name, value in run.decibels.items()}
    shown = [
        ("image", "An image"),
        ("blurred", "Blurred"),
        ("edges", "Edges (Sobel)"),
        ("sharpened", "Sharpened"),
        ("spectrum", "The image's spectrum"),
        ("low", "Low frequencies"),
        ("high", "High frequencies"),
        ("kernel", "How the hand shook"),
        ("photo", f"The photo: {decibels['photo']}"),
        ("wiener", f"Wiener's filter: {decibels['wiener']}"),
        ("restored", f"By gradients: {decibels['restored']}"),
    ]
    for place, (name, title) in zip(axes.flat, shown, strict=False):
        _show(place, name, run.images[name])
        place.set_title(title, loc="left", fontweight="bold", fontsize=10.5)
    _circle(axes[1, 0], run.images["spectrum"].shape, cutoff)
    _misfits(axes[2, 3], run)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=105, format="png")


def _show(axes: Any, name: str, image: Any) -> None:
    if name == "spectrum":
        axes.imshow(np.log10(image + 1e-3), cmap="magma", vmin=-1)
    elif name in ("edges", "kernel"):
        axes.imshow(image, cmap="gray_r" if name == "edges" else "magma", vmin=0)
    else:
        # What is left of high frequencies has a mean of 0: show it around a middle gray.
        axes.imshow(np.clip(image + 0.5 * (name == "high"), 0, 1))
    axes.set(xticks=[], yticks=[])


def _circle(axes: Any, shape: tuple[int, ...], cutoff: float) -> None:
    height, width = shape
    circle = Circle((width / 2, height / 2), cutoff * width, fill=False, color="white")
    axes.add_patch(circle)
    axes.annotate(
        "low",
        (width / 2, height / 2 - cutoff * width),
        (0, 3),
        textcoords="offset points",
        color="white",
        ha="center",
    )


def _misfits(axes: Any, run: Run) -> None:
    axes.plot(np.arange(len(run.misfits)), run.misfits, color=BLUE, linewidth=2)
    count = max(len(run.misfits), 1)
    axes.set(xlabel="step", box_aspect=1, xlim=(-0.22 * count, count), ylim=(0, None))
    axes.locator_params(axis="y", nbins=5, prune="lower")
    axes.set_xticks(sorted({0, count // 2, count}))
    axes.set_title("Misfit", loc="left", fontweight="bold", fontsize=10.5)
    axes.tick_params(axis="y", direction="in", pad=-24)  # inside, so that columns stay aligned
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
