"""The picture: the op, its gradient, and the times of its kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from bilateral_filter import bilateral_filter
from matplotlib.figure import Figure

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from compare_kernels import Comparison
    from numpy.typing import NDArray


BLUE, ORANGE, FAINT = "#0072B2", "#D55E00", "#666666"
WIDE: dict[str, Any] = {
    "radius": 9,
    "sigma_space": 5.0,
    "sigma_range": 0.3,
}  # so that footprints can be seen
# Pixels whose footprints are shown, as rows and columns in parts of the crop.
PLACES = ((0.26, 0.5), (0.6, 0.41), (0.48, 0.87), (0.64, 0.12))


def draw(
    image: NDArray[np.float32],
    noisy: NDArray[np.float32],
    found: Sequence[Comparison],
    file: Path,
) -> None:
    """Write the picture as a PNG, making its folder if need be."""
    figure = Figure(figsize=(10, 5.4), layout="constrained", facecolor="white")
    parts: Any = figure.subfigures(2, 1, height_ratios=(1.45, 1), hspace=0.03)
    images, charts = parts[0].subplots(1, 4), parts[1].subplots(1, 2)
    blurred = bilateral_filter(noisy, sigma_space=1.0, sigma_range=1e6).numpy()
    filtered = bilateral_filter(noisy).numpy()
    shown = (("Noise", noisy), ("Gaussian blur", blurred), ("Bilateral filter", filtered))
    for axes, (title, pixels) in zip(images, shown, strict=False):
        axes.imshow(pixels, cmap="gray", vmin=0, vmax=1)
        decibels = -10 * np.log10(np.mean(np.square(pixels - image)))
        text = f"{title}: {decibels:.1f} dB"
        axes.set_title(text, loc="left", fontweight="bold", fontsize=10.5)
    _gradient(images[3], noisy)
    for axes in images:
        axes.set(xticks=[], yticks=[])
    for axes, title, which in zip(
        charts, ("The first call", "Later calls"), ("first", "later"), strict=True
    ):
        _times(axes, title, which, found)
    charts[0].set(xscale="log", xlim=(10, 6e4))
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130, format="png")


def footprints(image: tp.Tensor, rows: Sequence[int], columns: Sequence[int]) -> tp.Tensor:
    """Return how much each pixel counts in some results: the gradient of their sum."""

    def some(x: tp.Tensor) -> tp.Tensor:
        y = bilateral_filter(x, **WIDE)
        return tp.add_n([y[row, column] for row, column in zip(rows, columns, strict=True)])

    gradient: tp.Tensor = tp.grad(some)(image)
    return gradient


def _gradient(axes: Any, noisy: NDArray[np.float32]) -> None:
    """Draw footprints over the lighthouse, where edges cut them off."""
    size = len(noisy)
    height, left = int(0.2 * size), int(0.15 * size)
    crop = noisy[int(0.46 * size) :][:height, left:][:, :height]
    rows, columns = (np.array(x) * height for x in zip(*PLACES, strict=True))
    rows, columns = rows.astype(int).tolist(), columns.astype(int).tolist()
    gradient = footprints(tp.asarray(crop), rows, columns).numpy()
    strength = np.clip(np.abs(gradient) / np.quantile(np.abs(gradient), 0.995), 0, 1)
    gray = np.repeat(0.25 + 0.5 * np.clip(crop, 0, 1)[..., None], 3, axis=-1)
    color = np.array([213, 94, 0]) / 255
    axes.imshow(gray + (color - gray) * strength[..., None])
    axes.plot(columns, rows, "+", color="white", markersize=9, markeredgewidth=1.8)
    axes.set_title("Gradient of 4 results", loc="left", fontweight="bold", fontsize=10.5)


def _times(axes: Any, title: str, which: str, found: Sequence[Comparison]) -> None:
    positions = np.arange(len(found))
    for shift, how, color, label in (
        (-0.2, "decomposed", FAINT, "decomposition"),
        (0.2, "native", BLUE, "own kernel"),
    ):
        milliseconds = [1e3 * getattr(getattr(one, how), which) for one in found]
        bars = axes.barh(positions + shift, milliseconds, 0.36, color=color, label=label)
        texts = [f"{x / 1e3:.1f} s" if x > 1e3 else f"{x:.0f} ms" for x in milliseconds]
        axes.bar_label(bars, texts, padding=4, fontsize=9)
    axes.set_xlabel("milliseconds")
    axes.margins(x=0.15)  # room for the numbers
    axes.set_yticks(positions, [one.backend for one in found])
    axes.invert_yaxis()
    axes.set_title(title, loc="left", fontweight="bold")
    axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 0.98), ncols=2, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, axis="x", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
