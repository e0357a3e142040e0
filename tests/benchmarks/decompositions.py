"""Every kernel of cpu that has a decomposition, compared with it, small and large.

``python tests/benchmarks --decompositions [NAME ...]``, once as it is and once with
``TENSORPLUG_CPU_JIT=0``. A copy of the backend lacks the one kernel. Each pair runs in interleaved
rounds by the clock of the thread, and the ratio is that of the best rounds; see ``kernels``. A
kernel whose ratio exceeds 1.1 in either run is worth its lines (CONTRIBUTING, "Adding an op").
"""

from __future__ import annotations

import time
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING

from expressions import Row, made, of, row
from harness import Workload, measure
from kernels import DTYPES, SIZES, passed, rows

import tensorplug as tp
from tensorplug.dispatch.calls import dispatch, dispatch_multiple
from tensorplug.engine.current import current_engine
from tensorplug_cpu.backend import CpuBackend
from tensorplug_cpu.plugin import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from expressions import Array

    from tensorplug.plugin import KernelSpec

WORTH = 1.1  # times as fast as the decomposition


def kernels() -> dict[str, KernelSpec]:
    """Return the specs of cpu's kernels that have a decomposition, by name."""
    decomposition = current_engine().registry.state.decomposition
    native = {entry.spec.name: entry.spec for table in TABLES for entry in table}
    return {name: spec for name, spec in native.items() if decomposition(name)}


def more_rows() -> Iterator[Row]:
    """Yield rows of kernels that NumPy has no expression for."""
    for kernel in ("Erfc", "Gelu", "Silu"):
        yield row(kernel, abs, of("signed"))
    for kernel in ("GeluGrad", "SigmoidGrad", "SiluGrad"):
        yield row(kernel, abs, of("signed", "signed"))
    yield row("MultiplyAdd", abs, of("unit", "unit", "unit"))
    for kernel in ("SoftmaxGrad", "SoftmaxCrossEntropy", "LayerNormGrad"):
        yield row(kernel, abs, partial(_rows, count=2))
    yield row("LayerNorm", abs, lambda n, dtype: [*_rows(n, dtype), None, None])
    yield row(
        "SoftmaxCrossEntropyGrad",
        abs,
        lambda n, dtype: [made("unit", n // 32, dtype), *_rows(n, dtype, 2)],
    )
    yield row("SparseSoftmaxCrossEntropy", abs, lambda n, dtype: [_labels(n), *_rows(n, dtype)])
    yield row(
        "SparseSoftmaxCrossEntropyGrad",
        abs,
        lambda n, dtype: [made("unit", n // 32, dtype), _labels(n), *_rows(n, dtype)],
    )
    yield row(
        "QuantizedMatMul", abs, lambda n, _: [*_rows(n, "int8"), *_rows(1024, "int8"), *[None] * 4]
    )


def _rows(size: int, dtype: str, count: int = 1) -> list[Array]:
    return [made("unit", (size // 32, 32), dtype) for _ in range(count)]


def _labels(size: int) -> Array:
    return made("unit", size // 32, "int32")


class Less(CpuBackend):
    """The CPU under another name."""

    name = "decomposed"


def workload(row: Row, size: int, dtype: str) -> Workload:
    """Return both contenders for one kernel at one size."""
    spec, arrays, attributes = kernels()[row.kernel], row.inputs(size, dtype), row.attributes(size)
    run = dispatch_multiple if spec.multiple_outputs else dispatch
    calls = {}
    for backend in ("cpu", Less.name):
        with tp.use_backend(backend):
            call = partial(run, spec, *map(passed, arrays), **attributes)
            calls[backend] = call if arrays else partial(copy_context().run, call)
    return Workload(f"{row.kernel}{row.label and ' '}{row.label}", "cpu", calls)


def report(names: Sequence[str], rounds: int) -> list[dict[str, object]]:
    """Measure and print the rows of these kernels, or of all."""
    figures: list[dict[str, object]] = []
    chosen = [each for each in (*rows(), *more_rows()) if each.kernel in (names or kernels())]
    print(f"{'kernel':44}{'dtype':>10}{'size':>9}{'native us':>12}{'decomposed':>12}{'ratio':>8}")
    tp.register_backend(Less.name, Less)
    for each in chosen:
        with tp.copy_registered_kernels("cpu", Less.name):
            tp.unregister_kernel(each.kernel, Less.name)
            for size in SIZES:
                if each.only in (0, size):
                    figures += [_measured(each, size, DTYPES[k], rounds) for k in each.kinds]
    return figures


def _measured(row: Row, size: int, dtype: str, rounds: int) -> dict[str, object]:
    case = workload(row, size, dtype)
    for call in case.contenders.values():
        call()
        call()  # the second call of a decomposition runs its program
    taken = measure(case, rounds=rounds, round_seconds=0.02, limit=3, clock=time.thread_time)
    native, decomposed = (taken.least(name) * 1e6 for name in case.contenders)
    ratio = decomposed / native
    mark = "" if ratio > WORTH else " *"
    print(
        f"{case.name:44}{dtype:>10}{size:9}{native:12.2f}{decomposed:12.2f}{ratio:8.2f}{mark}",
        flush=True,
    )
    return {"kernel": row.kernel, "dtype": dtype, "size": size, "ratio": ratio}
