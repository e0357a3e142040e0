"""Every kernel of the catalogue compared with a plain NumPy expression, small and large.

``python tests/benchmarks --kernels [NAME ...]``. Each pair runs in interleaved rounds on one
thread, by the clock of that thread, and the ratio is that of the best rounds, which other
processes disturb least. Run it with ``OMP_NUM_THREADS=1``, which our threads obey too.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

from expressions import elementwise
from harness import Workload, measure
from structured import structured

import tensorplug as tp
from tensorplug.dispatch.calls import dispatch, dispatch_multiple
from tensorplug.plugins.catalogue import catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from expressions import Row

SIZES = (64, 1 << 20)
DTYPES = {"f": "float32", "i": "int32", "b": "bool", "c": "complex64", "s": "", "u": "uint8"}


def rows() -> list[Row]:
    """Return the table."""
    return [*elementwise(), *structured()]


def missing() -> list[str]:
    """Return the kernels of the catalogue for which the table has no expression."""
    have = {row.kernel for row in rows()}
    return [spec.name for spec in catalogue() if spec.name not in have]


def workload(row: Row, size: int, dtype: str) -> Workload:
    """Return both contenders for one kernel at one size."""
    spec = next(spec for spec in catalogue() if spec.name == row.kernel)
    arrays = row.inputs(size, dtype)
    tp.set_backend("cpu")
    tensors = [passed(array) for array in arrays]
    attributes = row.attributes(size)
    run = dispatch_multiple if spec.multiple_outputs else dispatch
    return Workload(
        f"{row.kernel}{row.label and ' '}{row.label}",
        "numpy",
        {
            "numpy": lambda: row.expression(*arrays),
            "tensorplug cpu": lambda: run(spec, *tensors, **attributes),
        },
    )


def passed(operand: Any) -> Any:
    """Return arrays, lists and None as kernel inputs, over the same memory.

    The address of an array changes the time of light functions by a tenth and more.
    """
    if isinstance(operand, list):
        return [passed(array) for array in operand]
    if operand is None:
        return None
    shared = operand.ndim and operand.dtype.kind != "T"  # scalars and strings cannot be shared
    return tp.from_dlpack(operand) if shared else tp.asarray(operand)


def report(names: Sequence[str], rounds: int) -> list[dict[str, object]]:
    """Measure and print the rows of these kernels, or of all."""
    figures: list[dict[str, object]] = []
    print(f"{'kernel':44}{'dtype':>10}{'size':>9}{'numpy us':>12}{'ours us':>12}{'ratio':>8}")
    for row, size, dtype in _chosen(names):
        case = workload(row, size, dtype)
        taken = measure(case, rounds=rounds, round_seconds=0.02, clock=time.thread_time)
        ours, numpys = (taken.least(name) * 1e6 for name in ("tensorplug cpu", "numpy"))
        ratio = ours / numpys
        print(
            f"{case.name:44}{dtype:>10}{size:9}{numpys:12.2f}{ours:12.2f}{ratio:8.2f}", flush=True
        )
        figures.append(
            {"kernel": case.name, "dtype": dtype, "size": size, "numpy": numpys, "ours": ours}
            | {"ratio": ratio, "excess": ours - numpys}
        )
    for size in SIZES:
        _summary(figures, size)
    if not names:
        print(f"without an expression: {', '.join(missing()) or 'none'}")
    return figures


def _chosen(names: Sequence[str]) -> Iterator[tuple[Row, int, str]]:
    for row in rows():
        if not names or row.kernel in names:
            for size in SIZES:
                if row.only in (0, size):
                    for kind in row.kinds:
                        yield row, size, DTYPES[kind]


def _summary(figures: list[dict[str, object]], size: int) -> None:
    """Print the typical ratio and excess at one size."""
    here = [figure for figure in figures if figure["size"] == size]
    if here:
        ratio, excess = (
            statistics.median(float(str(record[what])) for record in here)
            for what in ("ratio", "excess")
        )
        print(f"median at {size}: ratio {ratio:.2f}, {excess:.2f} us above NumPy")
