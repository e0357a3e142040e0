"""What the examples share: a table made block by block, a limit to the memory, clusters."""

from __future__ import annotations

import argparse
import resource
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import dask
import dask.array as da
import numpy as np
from dask.diagnostics import ProgressBar
from dask.utils import format_bytes, parse_bytes

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCK_BYTES = 1 << 21


@dataclass(frozen=True)
class Table:
    """A table of float32: ``block(rows, seed)`` makes some of its rows."""

    block: Callable[[int, int], np.ndarray]
    columns: int

    @property
    def most(self) -> int:
        """Rows of a block."""
        return BLOCK_BYTES // (4 * self.columns)

    def sizes(self, rows: int) -> list[int]:
        """Return how many rows each block of a table has."""
        return [min(self.most, rows - start) for start in range(0, rows, self.most)]

    def lazy(self, rows: int) -> da.Array:
        """Return the table as an array that makes each block when it is read."""
        make = dask.delayed(self.block, pure=False)
        blocks = [
            da.from_delayed(make(size, seed), (size, self.columns), np.float32)
            for seed, size in enumerate(self.sizes(rows))
        ]
        return da.concatenate(blocks)

    def whole(self, rows: int) -> np.ndarray:
        """Return the same table in memory."""
        result = np.empty((rows, self.columns), np.float32)
        start = 0
        for seed, size in enumerate(self.sizes(rows)):
            result[start : start + size] = self.block(size, seed)
            start += size
        return result


def tensor(table: Table, rows: int, backend: str) -> tp.Tensor:
    """Return the table on a backend: block by block on ``dask``, whole on others."""
    if backend != "dask":
        return tp.asarray(table.whole(rows))
    from tensorplug_dask import from_dask

    return from_dask(table.lazy(rows))


def limit(extra: int) -> None:
    """Let this process have ``extra`` bytes of data more than it has, and no more."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    data = next(line for line in status.splitlines() if line.startswith("VmData"))
    most = int(data.split()[1]) * 1024 + extra
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def options_of_the_command_line() -> argparse.Namespace:
    """Return the options; end the process if they do not fit together."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="dask")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--memory", help="such as 200MiB: more than that may not be allocated")
    parser.add_argument("--workers", type=int, help="compute on a cluster of so many processes")
    parser.add_argument(
        "--address", help="compute on the cluster of a scheduler that runs already"
    )
    parser.add_argument("--kill", action="store_true", help="kill one of --workers on the way")
    options = parser.parse_args()
    if (options.workers or options.address) and (options.backend != "dask" or options.memory):
        parser.error("a cluster needs --backend dask; --memory is for this process alone")
    if options.workers and options.address:
        parser.error("--workers starts a cluster, --address names one: choose one of them")
    if options.kill and not options.workers:
        parser.error("--kill kills one of the processes that --workers starts")
    return options


def main(run: Callable[[tp.Tensor], str], table: Table) -> None:
    """Run an example as the command line says."""
    options = options_of_the_command_line()
    with ExitStack() as stack:
        if options.workers or options.address:
            import clusters  # needs distributed, which the rest does not

            if options.address:
                stack.enter_context(clusters.client_of(options.address))
            else:
                cluster = stack.enter_context(clusters.local_cluster(options.workers))
        else:
            stack.enter_context(ProgressBar(minimum=1))
        tp.set_backend(options.backend)
        size = format_bytes(4 * options.rows * table.columns)
        print(f"{size} of data on {tp.describe_device()}")
        # A few blocks first, so that threads and libraries have what they keep anyway.
        run(tensor(table, 4 * table.most, options.backend))
        if options.memory:
            limit(parse_bytes(options.memory))
            print(f"limit: {options.memory} beyond what the process has now")
        killer = None
        if options.kill:
            blocks = len(table.sizes(options.rows))
            killer = stack.enter_context(clusters.one_worker_killed(cluster, after=blocks))
        print(run(tensor(table, options.rows, options.backend)))
        if killer:
            print(f"killed on the way: {killer.killed}")
