"""Trigonometric and hyperbolic functions and their inverses, in radians.

Sin, Cos, Atan and Tanh are in ``elementwise``. Integers and booleans become the default float
first. Special values are those of the array API standard
2025.12 (C99, annex F and G), which is the source unless a docstring says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract import inference
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch.calls import chained, dispatch_binary, dispatch_unary

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

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
def acos(x: ArrayLike, /) -> Tensor:
    """Return ``arccos x`` elementwise. Inverse cosine, within [0, pi]; NaN outside [-1, 1].

    Integers become float32; complex numbers stay complex. (The array API standard's ``acos``.)

    Raises:
        DTypeError: strings.

    Examples:
        >>> tp.acos([1.0, 0.0, -1.0]).numpy().round(4)
        array([0.    , 1.5708, 3.1416], dtype=float32)
        >>> tp.acos(2.0)
        Tensor(nan, dtype=float32, device='cpu')

    """
    return dispatch_unary(ACOS, x)


@chained
def acosh(x: ArrayLike, /) -> Tensor:
    """Return ``arcosh x`` elementwise. Inverse hyperbolic cosine, at least 0; NaN below 1.

    Integers become float32; complex numbers stay complex. (The array API standard's ``acosh``.)

    Raises:
        DTypeError: strings.

    Examples:
        >>> tp.acosh([1.0, 0.5])
        Tensor([ 0., nan], dtype=float32, device='cpu')
        >>> tp.acosh(tp.cosh([-2.0, 2.0])).numpy().round(4)
        array([2., 2.], dtype=float32)

    """
    return dispatch_unary(ACOSH, x)


@chained
def asin(x: ArrayLike, /) -> Tensor:
    """Return ``arcsin x`` elementwise.

    Inverse sine, within [-pi/2, pi/2]; NaN outside [-1, 1]; -0.0 stays -0.0. Integers become
    float32; complex numbers stay complex. (The array API standard's ``asin``.)

    Raises:
        DTypeError: strings.

    Examples:
        >>> tp.asin([-1.0, 0.0, 1.0]).numpy().round(4)
        array([-1.5708,  0.    ,  1.5708], dtype=float32)
        >>> tp.asin(2.0)
        Tensor(nan, dtype=float32, device='cpu')

    """
    return dispatch_unary(ASIN, x)


@chained
def asinh(x: ArrayLike, /) -> Tensor:
    """Return ``arsinh x`` elementwise. Inverse hyperbolic sine; -0.0 stays -0.0.

    Integers become float32; complex numbers stay complex. (The array API standard's ``asinh``.)

    Raises:
        DTypeError: strings.

    Examples:
        >>> tp.asinh([0.0, -0.0])
        Tensor([ 0., -0.], dtype=float32, device='cpu')
        >>> tp.asinh(tp.sinh([-2.0, 2.0])).numpy().round(4)
        array([-2.,  2.], dtype=float32)

    """
    return dispatch_unary(ASINH, x)


@chained
def atan2(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return the angle of the point ``(b, a)`` elementwise: ``atan(a / b)`` in its quadrant.

    It is within [-pi, pi] and has the sign of ``a``, even of a zero: ``atan2(-0.0, -1)`` is -pi.
    The operands are real and broadcast; integers become float32. (The array API standard's
    ``atan2``.)

    Raises:
        DTypeError: complex numbers or strings.
        ShapeError: the operands do not broadcast.

    Examples:
        >>> y, x = [0.0, 1.0, 0.0, -1.0], [1.0, 0.0, -1.0, 0.0]
        >>> (tp.atan2(y, x) / tp.pi).numpy().round(4)  # half turns from the axis of x
        array([ 0. ,  0.5,  1. , -0.5], dtype=float32)

    """
    return dispatch_binary(ATAN2, a, b)


@chained
def atanh(x: ArrayLike, /) -> Tensor:
    """Return ``artanh x`` elementwise.

    Inverse hyperbolic tangent: infinite at -1 and 1, NaN outside. Integers become float32; complex
    numbers stay complex. (The array API standard's ``atanh``.)

    Raises:
        DTypeError: strings.

    Examples:
        >>> tp.atanh([-1.0, 0.0, 1.0, 2.0])
        Tensor([-inf,   0.,  inf,  nan], dtype=float32, device='cpu')
        >>> tp.atanh(tp.tanh([-0.5, 0.5])).numpy().round(4)
        array([-0.5,  0.5], dtype=float32)

    """
    return dispatch_unary(ATANH, x)


@chained
def cosh(x: ArrayLike, /) -> Tensor:
    """Return ``(e**x + e**-x) / 2`` elementwise. Hyperbolic cosine.

    Integers become float32; complex numbers stay complex. (The array API standard's ``cosh``.)

    Raises:
        DTypeError: strings.

    Examples:
        >>> tp.cosh([-1.0, 0.0, 1.0]).numpy().round(4)
        array([1.5431, 1.    , 1.5431], dtype=float32)

    """
    return dispatch_unary(COSH, x)


@chained
def sinh(x: ArrayLike, /) -> Tensor:
    """Return ``(e**x - e**-x) / 2`` elementwise. Hyperbolic sine; -0.0 stays -0.0.

    Integers become float32; complex numbers stay complex. (The array API standard's ``sinh``.)

    Raises:
        DTypeError: strings.

    Examples:
        >>> tp.sinh([-1.0, 0.0, 1.0]).numpy().round(4)
        array([-1.1752,  0.    ,  1.1752], dtype=float32)

    """
    return dispatch_unary(SINH, x)


@chained
def tan(x: ArrayLike, /) -> Tensor:
    """Return ``sin x / cos x`` elementwise. Tangent of radians; NaN at infinities.

    Integers become float32; complex numbers stay complex. (The array API standard's ``tan``.)

    Raises:
        DTypeError: strings.

    Examples:
        >>> tp.tan([0.0, tp.pi / 4, -tp.pi / 4]).numpy().round(4)
        array([ 0.,  1., -1.], dtype=float32)

    """
    return dispatch_unary(TAN, x)
