"""Kernels that are NumPy's ufuncs; of large arrays LLVM's loops, where those are faster.

NumPy has vector loops for some functions and dtypes, and calls the C library for each element of
the others.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import (
    Group,
    GroupInput,
    GroupOutput,
    KernelSpec,
    TensorType,
    expressions,
    specs,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.execution.floating_point import ufunc
from tensorplug_cpu.jit.codegen.settings import is_worthwhile
from tensorplug_cpu.jit.groups.kernels import compile_group
from tensorplug_cpu.jit.groups.threads import MOST_MODULES

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    import numpy as np

    from tensorplug.plugin import DType, Expression
    from tensorplug_cpu.arrays import Call
    from tensorplug_cpu.kernel_table import Kernels


_BOTH: Final = frozenset({dt.float32, dt.float64})
_FASTER: Final[dict[KernelSpec, frozenset[dt.DType]]] = {
    specs.EXP: frozenset({dt.float32}),
    specs.EXPM1: _BOTH,
    specs.SIN: _BOTH,
    specs.COS: _BOTH,
    specs.ASIN: _BOTH,
    specs.ACOS: _BOTH,
    specs.ACOSH: _BOTH,
    specs.ATANH: _BOTH,
    specs.ERF: _BOTH,
    specs.ERFC: _BOTH,
}


def compiled(spec: KernelSpec, out: TensorType) -> Call | None:
    """Return the loop of a function whose operand has the type of the result; None for NumPy's."""
    if out.dtype not in _FASTER.get(spec, ()) or not is_worthwhile(out.size):
        return None
    result, whole = _expression(spec, out.dtype), (True,)
    group = Group(
        spec.name, (out.size,), (GroupInput(out, whole),), (), (GroupOutput(result, out, whole),)
    )
    run = compile_group(group)
    return None if run is None else lambda x: run(x)[0]


@lru_cache(MOST_MODULES)
def _expression(spec: KernelSpec, dtype: DType) -> Expression:
    """Return the expression of one element: one object for all sizes, by which code is found."""
    rule = spec.expression_rule
    assert rule is not None  # as all functions have
    result = rule([expressions.parameter(0, dtype)], {}, TensorType(dtype, ()))
    assert result is not None
    return result


def register(
    kernels: Kernels,
    functions: Mapping[KernelSpec, np.ufunc],
    signals: Container[dt.DType] = dt.INEXACT,
) -> None:
    """Add a kernel for each ufunc.

    ``signals``: the dtypes of operands for which it can raise a floating-point flag.
    """
    for spec, function in functions.items():
        kind = _unary if function.nin == 1 else _binary
        kernels.prepare(spec, because="faster")(kind(spec, function, signals))


def _unary(
    spec: KernelSpec, function: np.ufunc, signals: Container[dt.DType]
) -> Callable[..., Call]:
    def prepare(x: TensorType, *, out: TensorType) -> Call:
        return compiled(spec, out) or ufunc(function, out, signals=x.dtype in signals)

    return prepare


def _binary(
    _: KernelSpec, function: np.ufunc, signals: Container[dt.DType]
) -> Callable[..., Call]:
    def prepare(a: TensorType, b: TensorType, *, out: TensorType) -> Call:  # noqa: ARG001
        return ufunc(function, out, signals=a.dtype in signals)

    return prepare
