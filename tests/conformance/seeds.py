"""Whether the suite flags a clean backend: runs its rows with many seeds, and prints a table.

``python tests/conformance/seeds.py --backend cpu --level 2 --seeds 20``. The checks of levels 0
and 1 draw nothing from the seed and are left out. Exit code: 1 if any row is flagged.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from rich.console import Console
from rich.table import Table

from tensorplug_conformance.denominator import entries, rows
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.session import Session, engine_factory
from tensorplug_conformance.trying.references import References
from tensorplug_conformance.trying.rows import run_row
from tensorplug_conformance.verdicts import BLOCKING

Told = tuple[int, Counter[str], int, list[str], float]
"""Of one seed: rows by status, how many cases, what was flagged, and seconds of processor time."""


def of_seed(backend: str, level: int, seed: int) -> Told:
    """Run the rows of levels 2 to ``level`` with one seed."""
    began = time.process_time()
    known = entries(extension_tables())
    native = Session(engine_factory(None), backend)
    alone = Session(engine_factory(None), backend, primitives_only=True)
    references = References()
    statuses: Counter[str] = Counter()
    flagged: list[str] = []
    cases = 0
    for row in (row for index in range(2, level + 1) for row in rows(index, known)):
        session = alone if row.mode == "decomposed" else native
        verdict = run_row(session, known[row.kernel], row, seed, references)
        statuses[verdict.status] += 1
        cases += verdict.passed
        if verdict.status in BLOCKING:
            why = verdict.failures[0] if verdict.failures else verdict.reason
            flagged.append(f"seed {seed}: {row.kernel} {row.dtype} {row.mode}: {why}")
    return seed, statuses, cases, flagged, time.process_time() - began


def main() -> int:
    """Run all seeds; print the table row by row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", required=True)
    parser.add_argument("--level", type=int, choices=(2, 3), default=2)
    parser.add_argument("--seeds", type=int, default=20, help="how many: 0, 1, 2, ...")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    console = Console()
    table = Table("seed", "rows that pass", "cases that pass", "flagged", "seconds of processor")
    wrong: list[str] = []
    seeds = range(options.first, options.first + options.seeds)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        work = partial(of_seed, options.backend, options.level)
        for seed, statuses, cases, flagged, seconds in pool.map(work, seeds):
            passed = sum(n for status, n in statuses.items() if status.startswith("pass"))
            row = (seed, passed, cases, len(flagged), round(seconds))
            table.add_row(*map(str, row))
            print(*row, *flagged, flush=True)  # noqa: T201  # hours may pass before the table
            wrong += flagged
    console.print(table)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
