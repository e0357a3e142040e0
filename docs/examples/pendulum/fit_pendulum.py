"""Find a pendulum's length and damping from noisy angles, by gradients through its simulation.

The command prints what it found on each backend, and writes one picture. It exits with 1 when
a true value lies outside three standard deviations of the one found.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pendulum
import pendulum_picture
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(arguments)
    console = Console()
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("backend", style="bold")
    for heading in ("seconds", "length (m)", "damping (1/s)", "difference"):
        table.add_column(heading, justify="right")
    table.add_row("(truth)", "", *[f"{value:.4f}" for value in pendulum.TRUTH], "")

    fits: list[pendulum.Fit] = []
    for name in options.backend or [tp.get_backend()]:
        with tp.use_backend(name), console.status(f"{name}: compiling, then descending"):
            start = time.perf_counter()
            for_noise, for_starts = tp.random.split(tp.random.key(options.seed))
            angles = tp.compile(pendulum.measure)(for_noise)
            try:
                found = pendulum.fit(angles, for_starts, options.starts, options.steps)
            except ArithmeticError as error:
                console.print(f"{name}: {error}", style="red")
                return 1
            seconds = time.perf_counter() - start
            if not fits:
                pendulum_picture.draw(found, angles, options.output)
        fits.append(found)
        apart = np.max(np.abs(found.parameters - fits[0].parameters) / found.deviations)
        pairs = zip(found.parameters, found.deviations, strict=True)
        texts = [f"{value:.4f} ± {deviation:.4f}" for value, deviation in pairs]
        table.add_row(name, f"{seconds:.1f}", *texts, f"{apart:.1e}" if len(fits) > 1 else "-")

    console.print(table)
    console.print("±: one standard deviation. difference: from the first, in these")
    console.print(f"Picture: {options.output}", highlight=False)
    errors = [np.abs(found.parameters - pendulum.TRUTH) / found.deviations for found in fits]
    return 0 if np.max(errors) < 3 else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--backend",
        action="append",
        metavar="NAME",
        help="may be repeated (default: the one that tensorplug chooses)",
    )
    parser.add_argument("--steps", type=int, default=150, metavar="N", help="of each descent")
    parser.add_argument("--starts", type=int, default=16, metavar="N", help="starting points")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--output", type=Path, default=Path("out/pendulum.png"), metavar="PNG")
    return parser


if __name__ == "__main__":
    sys.exit(main())
