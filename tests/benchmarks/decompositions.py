"""Every kernel of cpu compared with its decomposition and its form, at three sizes.

``python tests/benchmarks --decompositions [NAME ...]``, once as it is and once with
``TENSORPLUG_CPU_JIT=0``. One copy of the backend lacks the one kernel, another has its form from
the library of loops in its place. All run in interleaved rounds by the clock of the thread, each
on its own device, and ratios are those of the best rounds; see ``kernels``. A kernel whose ratios
exceed 1.1 in either run is worth its lines (CONTRIBUTING, "Adding an op").
"""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING

from expressions import Row, made, of, row
from harness import Workload, measure
from kernels import DTYPES, passed, rows

import tensorplug as tp
from tensorplug.dispatch.calls import dispatch, dispatch_multiple
from tensorplug.engine.current import current_engine
from tensorplug.errors import KernelNotFoundError
from tensorplug.plugin import tables_of
from tensorplug_cpu.backend import CpuBackend
from tensorplug_cpu.jit.codegen.settings import is_on
from tensorplug_cpu.jit.forms import formed
from tensorplug_cpu.plugin import TABLES
from tensorplug_loops import forms
from tensorplug_loops.forms.table import FormTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from expressions import Array

    from tensorplug.plugin import KernelSpec

WORTH = 1.1  # times as fast as the decomposition and the form
SIZES = (64, 1 << 12, 1 << 20)
OTHERS = ("decomposed", "formed")


def kernels() -> dict[str, KernelSpec]:
    """Return the specs of cpu's kernels that have a decomposition or a form, by name."""
    native = {entry.spec.name: entry.spec for table in TABLES for entry in table}
    others = decomposed(native) | formed_names()
    return {name: spec for name, spec in native.items() if name in others}


def decomposed(names: Iterable[str]) -> set[str]:
    """Return which kernels have a decomposition."""
    decomposition = current_engine().registry.state.decomposition
    return {name for name in names if decomposition(name)}


def formed_names() -> set[str]:
    """Return which kernels have a form that can be compiled here."""
    tables = tables_of(forms, FormTable, "forms") if is_on() else ()
    return {entry.spec.name for table in tables for entry in table}


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
        "QuantizedMatMul", abs, lambda n, _: [*_rows(n, "int8"), *_rows(1024, "int8"), *[None] * 5]
    )


def _rows(size: int, dtype: str, count: int = 1) -> list[Array]:
    return [made("unit", (size // 32, 32), dtype) for _ in range(count)]


def _labels(size: int) -> Array:
    return made("unit", size // 32, "int32")


class Renamed(CpuBackend):
    """The CPU under another name."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        """Its name."""
        return self._name


def workload(row: Row, size: int, dtype: str) -> Workload:
    """Return the contenders for one kernel at one size, without those that decline it."""
    spec, arrays, attributes = kernels()[row.kernel], row.inputs(size, dtype), row.attributes(size)
    run = dispatch_multiple if spec.multiple_outputs else dispatch
    others = zip(OTHERS, (decomposed([spec.name]), formed_names()), strict=True)
    calls = {}
    for backend in ("cpu", *(name for name, having in others if spec.name in having)):
        with tp.use_backend(backend):
            call = partial(run, spec, *map(passed, arrays), **attributes)
            try:
                call()
            except KernelNotFoundError:
                continue
            # Each in a context with its device: a call on another one than that is slower.
            calls[backend] = partial(copy_context().run, call)
    return Workload(f"{row.kernel}{row.label and ' '}{row.label}", "cpu", calls)


def report(names: Sequence[str], rounds: int) -> list[dict[str, object]]:
    """Measure and print the rows of these kernels, or of all."""
    figures: list[dict[str, object]] = []
    chosen = [each for each in (*rows(), *more_rows()) if each.kernel in (names or kernels())]
    print(
        f"{'kernel':44}{'dtype':>10}{'size':>9}{'native us':>12}{'decomposed':>12}{'formed':>12}"
    )
    for name in OTHERS:
        tp.register_backend(name, partial(Renamed, name))
    for each in chosen:
        with ExitStack() as stack:
            for name in OTHERS:
                stack.enter_context(tp.copy_registered_kernels("cpu", name))
                tp.unregister_kernel(each.kernel, name)
            if each.kernel in formed_names():
                spec = kernels()[each.kernel]
                form = formed(spec, always=True)
                stack.enter_context(tp.register_kernel(spec, "formed", form, prepares=True))
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
    native = taken.least("cpu")
    ratios = {
        name: taken.least(name) / native if name in case.contenders else math.nan
        for name in OTHERS
    }
    mark = " *" if any(ratio <= WORTH for ratio in ratios.values()) else ""
    print(
        f"{case.name:44}{dtype:>10}{size:9}{native * 1e6:12.2f}"
        f"{ratios['decomposed']:12.2f}{ratios['formed']:12.2f}{mark}",
        flush=True,
    )
    return {"kernel": row.kernel, "dtype": dtype, "size": size, **ratios}
