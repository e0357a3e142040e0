"""Exponentials, logarithms, reciprocals and roots, accurate where composed formulas are not.

Integers and booleans become the default float first. The source is the array API standard
2025.12 unless a docstring says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract import inference
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch.calls import chained, dispatch_binary, dispatch_unary

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

__all__ = [
    "expm1",
    "hypot",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "reciprocal",
    "rsqrt",
]


def _define_unary(name: str, expression: str | None = None) -> KernelSpec:
    return KernelSpec(
        name,
        ("x",),
        inference.same,
        accepts=dt.NUMERIC,
        promote=("x",),
        inexact=True,
        expression=expression,
    )


def _define_binary(name: str) -> KernelSpec:
    return KernelSpec(
        name,
        ("a", "b"),
        inference.broadcast,
        accepts=dt.REAL,
        promote=("a", "b"),
        inexact=True,
    )


EXPM1 = _define_unary("Expm1", "expm1")
LOG1P = _define_unary("Log1p", "log1p")
LOG2 = _define_unary("Log2", "log2")
LOG10 = _define_unary("Log10", "log10")
RECIPROCAL = _define_unary("Reciprocal")
RSQRT = _define_unary("Rsqrt")
HYPOT = _define_binary("Hypot")
LOG_ADD_EXP = _define_binary("LogAddExp")


@chained
def expm1(x: Any, /) -> Tensor:
    """Return ``e**x - 1`` elementwise. Accurate near 0 too; -0.0 stays -0.0."""
    return dispatch_unary(EXPM1, x)


@chained
def log1p(x: Any, /) -> Tensor:
    """Return ``ln(1 + x)`` elementwise.

    Accurate near 0 too; -0.0 stays -0.0; -inf at -1, NaN below.
    """
    return dispatch_unary(LOG1P, x)


@chained
def log2(x: Any, /) -> Tensor:
    """Return the logarithm of ``x`` to base 2 elementwise: -inf at 0, NaN below."""
    return dispatch_unary(LOG2, x)


@chained
def log10(x: Any, /) -> Tensor:
    """Return the logarithm of ``x`` to base 10 elementwise: -inf at 0, NaN below."""
    return dispatch_unary(LOG10, x)


@chained
def reciprocal(x: Any, /) -> Tensor:
    """Return ``1 / x`` elementwise. Infinite at zeros, with their sign."""
    return dispatch_unary(RECIPROCAL, x)


@chained
def rsqrt(x: Any, /) -> Tensor:
    """Return ``1 / sqrt(x)`` elementwise: infinite at 0, NaN below. This is TensorFlow's Rsqrt."""
    return dispatch_unary(RSQRT, x)


@chained
def hypot(a: Any, b: Any, /) -> Tensor:
    """Return ``sqrt(a**2 + b**2)`` elementwise, without intermediate overflow; real operands.

    Infinite if either is, even if the other is NaN. The gradient at the origin is 0.
    """
    return dispatch_binary(HYPOT, a, b)


@chained
def logaddexp(a: Any, b: Any, /) -> Tensor:
    """Return ``ln(e**a + e**b)`` elementwise, without intermediate overflow; real operands."""
    return dispatch_binary(LOG_ADD_EXP, a, b)
