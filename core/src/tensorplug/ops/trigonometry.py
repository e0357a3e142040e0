"""Trigonometric and hyperbolic functions and their inverses, in radians.

Sin, Cos, Atan and Tanh are in ``elementwise``. Integers and booleans become the default float
first. Special values are those of the array API standard
2025.12 (C99, annex F and G), which is the source unless a docstring says otherwise.
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
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan2",
    "atanh",
    "cosh",
    "sinh",
    "tan",
]


def _define_unary(name: str) -> KernelSpec:
    return KernelSpec(
        name,
        ("x",),
        inference.same,
        accepts=dt.NUMERIC,
        promote=("x",),
        inexact=True,
        expression=name.lower(),
    )


ACOS = _define_unary("Acos")
ACOSH = _define_unary("Acosh")
ASIN = _define_unary("Asin")
ASINH = _define_unary("Asinh")
ATANH = _define_unary("Atanh")
COSH = _define_unary("Cosh")
SINH = _define_unary("Sinh")
TAN = _define_unary("Tan")
ATAN2 = KernelSpec(
    "Atan2",
    ("a", "b"),
    inference.broadcast,
    accepts=dt.REAL,
    promote=("a", "b"),
    inexact=True,
    expression="atan2",
)


@chained
def acos(x: Any, /) -> Tensor:
    """Return ``arccos x`` elementwise. Inverse cosine, within [0, pi]; NaN outside [-1, 1]."""
    return dispatch_unary(ACOS, x)


@chained
def acosh(x: Any, /) -> Tensor:
    """Return ``arcosh x`` elementwise. Inverse hyperbolic cosine, at least 0; NaN below 1."""
    return dispatch_unary(ACOSH, x)


@chained
def asin(x: Any, /) -> Tensor:
    """Return ``arcsin x`` elementwise.

    Inverse sine, within [-pi/2, pi/2]; NaN outside [-1, 1]; -0.0 stays -0.0.
    """
    return dispatch_unary(ASIN, x)


@chained
def asinh(x: Any, /) -> Tensor:
    """Return ``arsinh x`` elementwise. Inverse hyperbolic sine; -0.0 stays -0.0."""
    return dispatch_unary(ASINH, x)


@chained
def atan2(a: Any, b: Any, /) -> Tensor:
    """Return the angle of the point ``(b, a)`` elementwise: ``atan(a / b)`` in its quadrant.

    It is within [-pi, pi] and has the sign of ``a``, even of a zero: ``atan2(-0.0, -1)`` is -pi.
    The operands are real and broadcast.
    """
    return dispatch_binary(ATAN2, a, b)


@chained
def atanh(x: Any, /) -> Tensor:
    """Return ``artanh x`` elementwise.

    Inverse hyperbolic tangent: infinite at -1 and 1, NaN outside.
    """
    return dispatch_unary(ATANH, x)


@chained
def cosh(x: Any, /) -> Tensor:
    """Return ``(e**x + e**-x) / 2`` elementwise. Hyperbolic cosine."""
    return dispatch_unary(COSH, x)


@chained
def sinh(x: Any, /) -> Tensor:
    """Return ``(e**x - e**-x) / 2`` elementwise. Hyperbolic sine; -0.0 stays -0.0."""
    return dispatch_unary(SINH, x)


@chained
def tan(x: Any, /) -> Tensor:
    """Return ``sin x / cos x`` elementwise. Tangent of radians; NaN at infinities."""
    return dispatch_unary(TAN, x)
