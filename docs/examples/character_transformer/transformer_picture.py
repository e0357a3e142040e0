"""The picture of a training: its losses, what the network wrote, and where it looked."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from pathlib import Path


BLUE, ORANGE, FAINT = "#0072B2", "#D55E00", "#666666"
SHOWN = 32  # characters in the map of attention


def draw(
    history: list[dict[str, Any]],
    by_frequency: float,
    samples: dict[int, str],
    shown: str,
    maps: np.ndarray[Any, Any],
    file: Path,
) -> None:
    """Write the picture as a PNG, making its folder if need be.

    ``samples``: what the network wrote, by step; ``maps``: [heads, n, n], how each character of
    the text ``shown`` looks at which in the last layer.
    """
    figure = Figure(figsize=(12.5, 7.0), layout="constrained", facecolor="white")
    axes: Any = figure.subplot_mosaic(
        [["losses", "map"], ["samples", "map"]], width_ratios=(1, 1.05), height_ratios=(1, 1.05)
    )
    _losses(axes["losses"], history, by_frequency)
    _samples(axes["samples"], samples)
    _map(axes["map"], shown, maps)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110, format="png")


def _losses(axes: Any, history: list[dict[str, Any]], by_frequency: float) -> None:
    steps = [row["step"] for row in history]
    for name, colour, label in (
        ("loss", BLUE, "trained on: mean of the epoch, with dropout"),
        ("validation_loss", ORANGE, "held out: after the epoch"),
    ):
        losses = [row[name] for row in history]
        axes.plot(steps, losses, "o-", color=colour, markersize=3.5, label=label)
    label = "by the frequency of characters"
    axes.axhline(by_frequency, color=FAINT, linestyle=":", label=label)
    axes.set(xlabel="step", ylabel="nats per character")
    axes.set_title("Loss", loc="left", fontweight="bold")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#e6e6e6", linewidth=0.8)


def _samples(axes: Any, samples: dict[int, str]) -> None:
    axes.set_axis_off()
    axes.set_title("What it writes", loc="left", fontweight="bold")
    style = {"transform": axes.transAxes, "va": "top", "parse_math": False}
    for at, (step, sample) in enumerate(samples.items()):
        top = 0.98 - at / len(samples)
        axes.text(0, top, f"after {step} steps", color=ORANGE, **style)
        lines = textwrap.wrap(sample.replace("\n", " "), 72, max_lines=4, placeholder="")
        text = "\n".join(lines)
        axes.text(0, top - 0.075, text, family="monospace", fontsize=8.5, **style)


def _map(axes: Any, shown: str, maps: np.ndarray[Any, Any]) -> None:
    """Draw the sharpest head, at the end of the piece of text."""
    chosen = int(np.argmax(maps.max(axis=-1).mean(axis=-1)))
    axes.imshow(maps[chosen, -SHOWN:, -SHOWN:], cmap="Blues", vmin=0, interpolation="nearest")
    visible = str.maketrans({"\n": "\u21b5", " ": "\u00b7"})
    characters = list(shown[-SHOWN:].translate(visible))
    for ticks, side in ((axes.set_xticks, "x"), (axes.set_yticks, "y")):
        ticks(range(SHOWN), labels=characters, family="monospace", fontsize=9, parse_math=False)
        axes.tick_params(axis=side, length=0)
    axes.set(xlabel="looks at", ylabel="this character")
    axes.set_title(f"Attention: last layer, head {chosen + 1}", loc="left", fontweight="bold")
    axes.set_xticks(np.arange(SHOWN + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(SHOWN + 1) - 0.5, minor=True)
    axes.grid(visible=True, which="minor", color="#eeeeee", linewidth=0.5)
    axes.tick_params(which="minor", length=0)
