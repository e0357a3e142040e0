"""Find principal components of more data than memory, and draw how much memory it takes.

The command runs one program on ``cpu`` and on ``dask``, with and without a limit, and draws one
picture. It exits with 1 unless ``cpu`` fails for lack of memory, and ``dask`` succeeds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import memory_picture
from memory_trace import FEATURES, MIB, Trace, run_pca
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence


UNLIMITED = 1 << 40


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(arguments)
    console = Console()
    limit, rows = options.memory * MIB, options.data * MIB // (4 * FEATURES)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("backend", style="bold")
    for heading in ("data", "limit", "peak", "seconds"):
        table.add_column(heading, justify="right")
    table.add_column("result")
    traces = []
    for backend, size, allowed in (
        ("cpu", rows // 4, UNLIMITED),
        ("cpu", rows, UNLIMITED),
        ("cpu", rows, limit),
        ("dask", rows // 4, limit),
        ("dask", rows, limit),
        ("dask", 3 * rows, limit),
    ):
        with console.status(f"{backend}: {4 * FEATURES * size / MIB:.0f} MiB of data"):
            traces.append(run_pca(backend, size, allowed))
        table.add_row(*_row(traces[-1]))
    console.print(table)
    memory_picture.draw(traces, limit, options.output)
    console.print(f"Picture: {options.output}", highlight=False)
    surprises = [trace for trace in traces if not _as_expected(trace)]
    for trace in surprises:
        size = f"{trace.data / MIB:.0f} MiB"
        console.print(f"{trace.backend}, {size}: not as expected: {trace.said}", markup=False)
    return 1 if surprises else 0


def _row(trace: Trace) -> list[str]:
    limited = trace.limit < UNLIMITED
    error = trace.said.partition(":")[0].rpartition(".")[2].lstrip("_")
    return [
        trace.backend,
        f"{trace.data / MIB:.0f} MiB",
        f"{trace.limit / MIB:.0f} MiB" if limited else "-",
        f"{trace.peak / MIB:.0f} MiB",
        f"{trace.seconds[-1]:.1f}",
        error if trace.code else "found",
    ]


def _as_expected(trace: Trace) -> bool:
    limited = trace.backend == "cpu" and trace.limit < UNLIMITED
    return trace.failed_for_memory if limited else trace.code == 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=int, default=256, metavar="MIB", help="size of the table")
    parser.add_argument("--memory", type=int, default=200, metavar="MIB", help="the limit")
    parser.add_argument("--output", type=Path, default=Path("out/memory.png"), metavar="PNG")
    return parser


if __name__ == "__main__":
    sys.exit(main())
