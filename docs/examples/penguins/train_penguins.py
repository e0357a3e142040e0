"""Learn the species of penguins from a CSV file, and say which birds are mistaken.

The command prints the confusion of the birds kept for the test, and draws the curves. It exits
with 1 if fewer than 95 % of them are named.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import penguins
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Sequence

REQUIRED = 0.95


def train(epochs: int, seed: int, *, progress: bool = True) -> tuple[tp.train.Fit, Any]:
    """Train on the active backend.

    Returns:
        What ``fit`` returns, and the confusion of the test: [species, named species].

    """
    for_weights, for_order = tp.random.split(tp.random.key(seed))
    table, test = penguins.split(penguins.load())
    scaled = penguins.scaling(table)
    metrics = tp.train.metrics
    fitted = tp.train.fit(
        penguins.Network.init(for_weights),
        tp.train.batches(scaled(table), 32, key=for_order),
        tp.train.supervised(tp.losses.sparse_softmax_cross_entropy),
        tp.train.adamw(1e-2, weight_decay=1e-2),
        epochs=epochs,
        validation=tp.train.batches(scaled(test), len(test.species)),
        metrics={"accuracy": metrics.Accuracy(), "confusion": metrics.Confusion()},
        progress=progress,
    )
    return fitted, np.asarray(fitted.history[-1]["validation_confusion"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=40, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--output", type=Path, default=Path("out/penguins.png"), metavar="PNG")
    options = parser.parse_args(arguments)
    fitted, confusion = train(options.epochs, options.seed)
    shown = Table(box=SIMPLE_HEAD, pad_edge=False, title="birds of the test", title_justify="left")
    shown.add_column("species", style="bold")
    for name in penguins.SPECIES:
        shown.add_column(f"named {name}", justify="right")
    for name, counts in zip(penguins.SPECIES, confusion, strict=True):
        shown.add_row(name, *(f"{int(count)}" for count in counts))
    console = Console()
    console.print(shown)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    tp.train.curves(fitted.history).savefig(options.output, dpi=110)
    console.print(f"Picture: {options.output}", highlight=False)
    return 0 if np.trace(confusion) >= REQUIRED * confusion.sum() else 1


if __name__ == "__main__":
    sys.exit(main())
