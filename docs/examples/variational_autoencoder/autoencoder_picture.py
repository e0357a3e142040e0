"""The picture of a training: the latent plane, what it decodes to, copies of images, losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from pathlib import Path

    from data import Split
    from train_autoencoder import Run


BLUE, ORANGE, FAINT = "#0072B2", "#D55E00", "#666666"
COPIED = 10  # one test image of each class


def draw(run: Run, split: Split, limit: float, file: Path) -> None:
    """Write the picture as a PNG, making its folder if need be."""
    figure = Figure(figsize=(12.5, 7.4), layout="constrained", facecolor="white")
    axes: Any = figure.subplot_mosaic(
        [["plane", "grid"], ["losses", "copies"]], height_ratios=(2.6, 1), width_ratios=(1.1, 1)
    )
    _plane(axes["plane"], run, split)
    _grid(axes["grid"], run)
    _losses(axes["losses"], run, limit)
    _copies(axes["copies"], run, split)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110, format="png")


def _plane(axes: Any, run: Run, split: Split) -> None:
    points = axes.scatter(
        *run.means.T, c=split.test_labels, cmap="tab10", s=14, vmin=-0.5, vmax=9.5
    )
    for digit in range(10):
        own = run.means[split.test_labels == digit]
        place = np.median(own, axis=0)
        box = {"boxstyle": "circle,pad=0.2", "facecolor": "white", "alpha": 0.85}
        box["edgecolor"] = points.cmap(digit)
        axes.text(*place, str(digit), ha="center", va="center", fontweight="bold", bbox=box)
    axes.set(xlabel="first latent number", ylabel="second")
    axes.set_title("Where test images are in the latent plane", loc="left", fontweight="bold")
    _plain(axes)


def _grid(axes: Any, run: Run) -> None:
    padded = np.pad(run.grid, ((0, 0), (0, 0), (1, 1), (1, 1)))
    rows, columns, height, width = padded.shape
    image = padded.transpose(0, 2, 1, 3).reshape(rows * height, columns * width)
    axes.imshow(image, cmap="gray_r", vmin=0, vmax=1)
    axes.set(xticks=[], yticks=[], xlabel="points of equal probability, as the plane has them")
    axes.set_title("What points of the plane decode to", loc="left", fontweight="bold")


def _losses(axes: Any, run: Run, limit: float) -> None:
    epochs = np.arange(1, len(run.losses) + 1)
    axes.plot(epochs, run.losses, color=BLUE, label="training")
    axes.plot(epochs, run.tests, color=ORANGE, linewidth=1, label="test")
    axes.axhline(limit, color=FAINT, linestyle=":", label="independent pixels")
    axes.set(xlabel="epoch", ylabel="nats per image")
    axes.set_title("Minus the evidence lower bound", loc="left", fontweight="bold")
    axes.legend(frameon=False, ncols=3)
    _plain(axes)


def _copies(axes: Any, run: Run, split: Split) -> None:
    first = [int(np.flatnonzero(split.test_labels == digit)[0]) for digit in range(COPIED)]
    real, copies = (
        np.concatenate([np.pad(each, 1) for each in images[first]], axis=1)
        for images in (split.test_images[..., 0], run.copies)
    )
    axes.imshow(np.concatenate([real, copies]), cmap="gray_r", vmin=0, vmax=1)
    axes.set_xticks([])
    axes.set_yticks([4.5, 14.5], labels=["image", "copy"])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title("Test images, and what two numbers keep", loc="left", fontweight="bold")


def _plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
