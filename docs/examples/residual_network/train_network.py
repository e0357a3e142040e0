"""Train a small residual network on handwritten digits that move about.

The command prints the accuracy on test images, and draws the curves. It exits with 1 below 97 %.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import residual_network
from rich.console import Console

import tensorplug as tp

sys.path.append(str(Path(__file__).parents[1] / "digits"))
import data

if TYPE_CHECKING:
    from collections.abc import Sequence

BATCH, REQUIRED = 64, 0.97


def train(epochs: int, seed: int, *, progress: bool = True) -> tp.train.Fit:
    """Train on the active backend; everything random comes from ``seed``."""
    for_weights, for_data, for_shifts = tp.random.split(tp.random.key(seed), 3)
    split = data.split(data.load())
    model = residual_network.network(for_weights)
    batches = tp.train.batches((split.train_images, split.train_labels), BATCH, key=for_data)
    steps = epochs * len(batches)
    return tp.train.fit(
        model,
        batches,
        residual_network.objective,
        tp.train.adamw(tp.train.cosine_decay(3e-3, steps), weight_decay=1e-4),
        epochs=epochs,
        key=for_shifts,
        state=tp.train.layers.initial_state(model),
        validation=tp.train.batches((split.test_images, split.test_labels), 4 * BATCH),
        metrics={"accuracy": tp.train.metrics.Accuracy()},
        progress=progress,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=20, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--output", type=Path, default=Path("out/network.png"), metavar="PNG")
    options = parser.parse_args(arguments)
    fitted = train(options.epochs, options.seed)
    console, accuracy = Console(), fitted.history[-1]["validation_accuracy"]
    console.print(f"accuracy on test images: {accuracy:.4f}", highlight=False)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    tp.train.curves(fitted.history).savefig(options.output, dpi=110)
    console.print(f"Picture: {options.output}", highlight=False)
    return 0 if accuracy >= REQUIRED else 1


if __name__ == "__main__":
    sys.exit(main())
