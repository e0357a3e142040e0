"""The picture of a training: its losses, what the network wrote, and where it looked."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from pathlib import Path

    from train_transformer import Run


BLUE, ORANGE, FAINT = "#0072B2", "#D55E00", "#666666"
SHOWN = 32  # characters in the map of attention
AVERAGED = 20  # steps


def draw(run: Run, by_frequency: float, file: Path) -> None:
    """Write the picture as a PNG, making its folder if need be."""
    figure = Figure(figsize=(12.5, 7.0), layout="constrained", facecolor="white")
    axes: Any = figure.subplot_mosaic(
        [["losses", "map"], ["samples", "map"]], width_ratios=(1, 1.05), height_ratios=(1, 1.05)
    )
    _losses(axes["losses"], run, by_frequency)
    _samples(axes["samples"], run)
    _map(axes["map"], run)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110, format="png")


def _losses(axes: Any, run: Run, by_frequency: float) -> None:
    wide = min(AVERAGED, len(run.losses))
    mean = np.convolve(run.losses, np.full(wide, 1 / wide), mode="valid")
    axes.plot(np.arange(wide, len(run.losses) + 1), mean, color=BLUE, label="trained on")
    axes.plot(
        list(run.tests), list(run.tests.values()), "o-", color=ORANGE, ms=3.5, label="held out"
    )
    label = "by the frequency of characters"
    axes.axhline(by_frequency, color=FAINT, linestyle=":", label=label)
    axes.set(xlabel="step", ylabel="nats per character")
    axes.set_title("Loss", loc="left", fontweight="bold")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#e6e6e6", linewidth=0.8)


def _samples(axes: Any, run: Run) -> None:
    axes.set_axis_off()
    axes.set_title("What it writes", loc="left", fontweight="bold")
    style = {"transform": axes.transAxes, "va": "top", "parse_math": False}
    for at, (step, sample) in enumerate(run.samples.items()):
        top = 0.98 - at / len(run.samples)
        axes.text(0, top, f"after {step} steps", color=ORANGE, **style)
        lines = textwrap.wrap(sample.replace("\n", " "), 72, max_lines=4, placeholder="")
        text = "\n".join(lines)
        axes.text(0, top - 0.075, text, family="monospace", fontsize=8.5, **style)


def _map(axes: Any, run: Run) -> None:
    """Draw the sharpest head of the last layer, at the end of the piece of text."""
    heads = run.maps[-1][:, -SHOWN:, -SHOWN:]
    chosen = int(np.argmax(run.maps[-1].max(axis=-1).mean(axis=-1)))
    axes.imshow(heads[chosen], cmap="Blues", vmin=0, interpolation="nearest")
    visible = str.maketrans({"\n": "\u21b5", " ": "\u00b7"})
    characters = list(run.shown[-SHOWN:].translate(visible))
    for ticks, side in ((axes.set_xticks, "x"), (axes.set_yticks, "y")):
        ticks(range(SHOWN), labels=characters, family="monospace", fontsize=9, parse_math=False)
        axes.tick_params(axis=side, length=0)
    axes.set(xlabel="looks at", ylabel="this character")
    title = f"Attention: layer {len(run.maps)}, head {chosen + 1}"
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xticks(np.arange(SHOWN + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(SHOWN + 1) - 0.5, minor=True)
    axes.grid(visible=True, which="minor", color="#eeeeee", linewidth=0.5)
    axes.tick_params(which="minor", length=0)
