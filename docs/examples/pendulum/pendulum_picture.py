"""The picture of a fit: the data, the descents, and the landscape that they cross."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pendulum
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

import tensorplug as tp

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


BLUE, ORANGE, FAINT = "#0072B2", "#D55E00", "#666666"


def draw(fit: pendulum.Fit, angles: tp.Tensor, file: Path) -> None:
    """Write the picture as a PNG, making its folder if need be."""
    figure = Figure(figsize=(12.5, 6.2), layout="constrained", facecolor="white")
    axes: Any = figure.subplot_mosaic(
        [["data", "map"], ["misfit", "map"]], width_ratios=(1, 1.1), height_ratios=(1.25, 1)
    )
    _data(axes["data"], fit, angles)
    _misfits(axes["misfit"], fit)
    _map(axes["map"], fit, angles)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110, format="png")


def _data(axes: Any, fit: pendulum.Fit, angles: tp.Tensor) -> None:
    begin = fit.paths[np.argmin(fit.misfits[:, -1]), 0]
    for parameters, style in (
        (begin, {"color": FAINT, "linestyle": ":", "label": "where this fit began"}),
        (fit.parameters, {"color": BLUE, "linewidth": 2, "label": "best fit"}),
    ):
        swing = pendulum.simulate(tp.asarray(parameters, dtype="float32")).numpy()
        axes.plot([0, *pendulum.TIMES], [pendulum.RELEASE, *swing], **style)
    axes.plot(pendulum.TIMES, angles.numpy(), ".", color=ORANGE, markersize=5, label="measured")
    axes.set(xlabel="time (s)", ylabel="angle (radians)", ylim=(-3.1, 2.9))
    axes.set_title("A pendulum's swing", loc="left", fontweight="bold")
    axes.legend(frameon=False, loc="lower right", ncols=3)
    _plain(axes)


def _misfits(axes: Any, fit: pendulum.Fit) -> None:
    axes.semilogy(fit.misfits.T, color=BLUE, linewidth=1, alpha=0.6)
    # Of n measurements with p parameters, half of chi squared is (n - p) / 2 on average.
    expected = (pendulum.MEASUREMENTS - 2) / 2
    axes.axhline(expected, color=ORANGE, linestyle="--", label=f"what noise leaves: {expected:g}")
    axes.set(xlabel="step", ylabel="misfit")
    title = f"Descents from {len(fit.paths)} starting points"
    axes.set_title(title, loc="left", fontweight="bold")
    axes.legend(frameon=False, loc="upper right")
    _plain(axes)


def _map(axes: Any, fit: pendulum.Fit, angles: tp.Tensor) -> None:
    lengths = np.geomspace(0.35, 4.0, 160, dtype=np.float32)
    dampings = np.geomspace(0.02, 2.0, 120, dtype=np.float32)
    heights = _heights(angles, lengths, dampings)
    levels = np.geomspace(heights.min(), heights.max(), 24)
    shades = axes.contourf(
        lengths, dampings, heights, levels, norm=LogNorm(), cmap="Blues_r", alpha=0.85
    )
    bar = axes.figure.colorbar(shades, ax=axes, shrink=0.6, label="misfit", pad=0.01)
    bar.set_ticks([100, 1000, 10000], labels=["100", "1000", "10 000"])
    bar.minorticks_off()
    for path in fit.paths:
        axes.plot(*path.T, color="white", linewidth=1.8)
        axes.plot(*path.T, color=ORANGE, linewidth=0.9)
        axes.plot(*path[0], "o", color=ORANGE, markeredgecolor="white", markersize=6)
    axes.set(xscale="log", yscale="log", xlabel="length (m)", ylabel="damping (1/s)")
    axes.set_xticks([0.5, 1, 2, 4], labels=["0.5", "1", "2", "4"])
    axes.set_yticks([0.03, 0.1, 0.3, 1], labels=["0.03", "0.1", "0.3", "1"])
    axes.minorticks_off()
    axes.set_title("The landscape, and the ways through it", loc="left", fontweight="bold")
    _zoom(axes.inset_axes((0.085, 0.06, 0.33, 0.33)), fit, angles)


def _zoom(axes: Any, fit: pendulum.Fit, angles: tp.Tensor) -> None:
    """Draw the minimum, 4 standard deviations around it, with ellipses of 1 and 2."""
    (length, damping), (wide, high) = fit.parameters, 4 * fit.deviations
    lengths = np.linspace(length - wide, length + wide, 40, dtype=np.float32)
    dampings = np.linspace(damping - high, damping + high, 40, dtype=np.float32)
    heights = _heights(angles, lengths, dampings)
    axes.contourf(lengths, dampings, heights, 12, cmap="Blues_r", alpha=0.85)
    variances, directions = np.linalg.eigh(fit.covariance)
    for deviations in (1, 2):
        # The axes of the ellipse are those of the covariance.
        width, height = 2 * deviations * np.sqrt(variances)
        turn = np.degrees(np.arctan2(directions[1, 0], directions[0, 0]))
        axes.add_patch(
            Ellipse((length, damping), width, height, angle=turn, fill=False, color="black")
        )
    axes.plot(*fit.parameters, "+", color="black", markersize=8, label="found")
    axes.plot(*pendulum.TRUTH, "*", color=ORANGE, markersize=12, label="truth")
    axes.legend(fontsize=8, loc="upper left", frameon=True, framealpha=0.8)
    axes.tick_params(labelsize=8)
    axes.locator_params(nbins=3)


def _heights(
    angles: tp.Tensor, lengths: NDArray[np.float32], dampings: NDArray[np.float32]
) -> NDArray[np.float32]:
    found = pendulum.landscape(angles, tp.asarray(lengths), tp.asarray(dampings))
    return found.numpy()


def _plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
