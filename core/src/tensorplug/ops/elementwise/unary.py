"""Elementwise arithmetic: specs and public functions.

Binary ops broadcast by NumPy's rules and promote their operands to a common dtype; Python
scalars are weak. The formulas are the definitions; the source is the array API standard
2025.12 unless a docstring says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract import inference
from tensorplug.contract.expressions import of_floats
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch.calls import (
    as_tensor,
    chained,
    dispatch_unary,
)
from tensorplug.ops.elementwise.complexes import COMPLEX_ABS
from tensorplug.ops.movement import IDENTITY

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = [
    "abs",
    "atan",
    "cos",
    "erf",
    "exp",
    "floor",
    "log",
    "negative",
    "positive",
    "sin",
    "sqrt",
    "square",
    "tanh",
]


def _define_inexact(
    name: str, expression: str, accepts: frozenset[DType] = dt.NUMERIC
) -> KernelSpec:
    return KernelSpec(
        name,
        ("x",),
        inference.same,
        accepts=accepts,
        promote=("x",),
        inexact=True,
        expression=expression,
    )


NEG = KernelSpec(
    "Neg", ("x",), inference.same, accepts=dt.NUMERIC, promote=("x",), expression="negative"
)
ABS = KernelSpec("Abs", ("x",), inference.same, accepts=dt.REAL, promote=("x",), expression="abs")
FLOOR = KernelSpec(
    "Floor",
    ("x",),
    inference.same,
    accepts=dt.REAL,
    promote=("x",),
    expression=of_floats("floor"),
)
EXP = _define_inexact("Exp", "exp")
LOG = _define_inexact("Log", "log")
SQRT = _define_inexact("Sqrt", "sqrt")
SIN = _define_inexact("Sin", "sin")
COS = _define_inexact("Cos", "cos")
ATAN = _define_inexact("Atan", "atan")
ERF = _define_inexact("Erf", "erf", dt.REAL)
TANH = _define_inexact("Tanh", "tanh")
SQUARE = KernelSpec(
    "Square", ("x",), inference.same, accepts=dt.NUMERIC, promote=("x",), elementwise=True
)


@chained
def negative(x: ArrayLike, /) -> Tensor:
    """Return ``-x`` elementwise, in the dtype of ``x``.

    Unsigned integers wrap, and so does the least signed one.

    Raises:
        DTypeError: booleans or strings.

    Source: the array API standard.

    Examples:
        >>> tp.negative([1.5, 0.0, -2.0])
        Tensor([-1.5, -0. ,  2. ], dtype=float32, device='cpu')
        >>> tp.negative(tp.asarray([1, 0], dtype="uint8"))
        Tensor([255,   0], dtype=uint8, device='cpu')

    """
    return dispatch_unary(NEG, x)


@chained
def abs(x: ArrayLike, /) -> Tensor:
    """Return ``|x|`` elementwise.

    The dtype is that of ``x``. For complex numbers the result is the modulus, in the dtype of
    the parts. The least signed integer stays as it is, because its absolute value does not fit.

    Raises:
        DTypeError: booleans or strings.

    Source: the array API standard.

    Examples:
        >>> tp.abs([-1.5, 0.0, 2.0])
        Tensor([1.5, 0. , 2. ], dtype=float32, device='cpu')
        >>> tp.abs([3 + 4j])
        Tensor([5.], dtype=float32, device='cpu')
        >>> tp.abs(tp.asarray([-128, -127], dtype="int8"))
        Tensor([-128,  127], dtype=int8, device='cpu')

    """
    tensor: Any = x if hasattr(x, "_placement") else as_tensor(x, what="Abs: input 'x'")
    return dispatch_unary(COMPLEX_ABS if tensor.dtype.kind == "complex" else ABS, tensor)


@chained
def positive(x: ArrayLike, /) -> Tensor:
    """Return ``x`` as it is: ``+x``.

    Source: the array API standard.

    Examples:
        >>> tp.positive([-1.5, 2.0])
        Tensor([-1.5,  2. ], dtype=float32, device='cpu')

    """
    return dispatch_unary(IDENTITY, x)


@chained
def floor(x: ArrayLike, /) -> Tensor:
    """Return the largest integer that is not above ``x``, elementwise.

    The dtype is that of ``x``, so floats stay floats. Integers stay as they are.

    Raises:
        DTypeError: complex numbers, booleans or strings.

    Source: the array API standard.

    Examples:
        >>> tp.floor([1.7, -1.2, 3.0])
        Tensor([ 1., -2.,  3.], dtype=float32, device='cpu')

    """
    return dispatch_unary(FLOOR, x)


@chained
def exp(x: ArrayLike, /) -> Tensor:
    """Return ``e**x`` elementwise: the exponential function.

    Above about 88.7, float32 gives infinity. Integers and booleans become floats, float32 by
    default.

    Raises:
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> tp.exp([0.0, 1.0, -1.0]).numpy().round(4)
        array([1.    , 2.7183, 0.3679], dtype=float32)
        >>> tp.exp([-np.inf, 100.0])
        Tensor([ 0., inf], dtype=float32, device='cpu')

    """
    return dispatch_unary(EXP, x)


@chained
def log(x: ArrayLike, /) -> Tensor:
    """Return ``ln x`` elementwise: the natural logarithm.

    It is -inf at 0 and NaN below, but complex for complex ``x``. Integers and booleans become
    floats, float32 by default.

    Raises:
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> tp.log([1.0, 10.0]).numpy().round(4)
        array([0.    , 2.3026], dtype=float32)
        >>> tp.log([0.0, -1.0])
        Tensor([-inf,  nan], dtype=float32, device='cpu')
        >>> tp.log([-1 + 0j]).numpy().round(4)
        array([0.+3.1416j], dtype=complex64)

    """
    return dispatch_unary(LOG, x)


@chained
def sqrt(x: ArrayLike, /) -> Tensor:
    """Return ``x**0.5`` elementwise: the square root.

    It is NaN below 0, but complex for complex ``x``; -0.0 stays -0.0. Integers and booleans become
    floats, float32 by default.

    Raises:
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> tp.sqrt([0.0, 2.25, -1.0])
        Tensor([0. , 1.5, nan], dtype=float32, device='cpu')
        >>> tp.sqrt([16, 25])
        Tensor([4., 5.], dtype=float32, device='cpu')
        >>> tp.sqrt([-4 + 0j])
        Tensor([0.+2.j], dtype=complex64, device='cpu')

    """
    return dispatch_unary(SQRT, x)


@chained
def sin(x: ArrayLike, /) -> Tensor:
    """Return ``sin x`` elementwise: the sine of radians.

    Integers and booleans become floats, float32 by default.

    Raises:
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> tp.sin([0.0, np.pi / 6, np.pi / 2]).numpy().round(4)
        array([0. , 0.5, 1. ], dtype=float32)

    """
    return dispatch_unary(SIN, x)


@chained
def cos(x: ArrayLike, /) -> Tensor:
    """Return ``cos x`` elementwise: the cosine of radians.

    Integers and booleans become floats, float32 by default.

    Raises:
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> tp.cos([0.0, np.pi / 3, np.pi]).numpy().round(4)
        array([ 1. ,  0.5, -1. ], dtype=float32)

    """
    return dispatch_unary(COS, x)


@chained
def atan(x: ArrayLike, /) -> Tensor:
    """Return ``atan x`` elementwise: the inverse tangent, in radians within [-pi/2, pi/2].

    Integers and booleans become floats, float32 by default.

    Raises:
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> tp.atan([0.0, 1.0, -np.inf]).numpy().round(4)
        array([ 0.    ,  0.7854, -1.5708], dtype=float32)

    """
    return dispatch_unary(ATAN, x)


@chained
def erf(x: ArrayLike, /) -> Tensor:
    """Return the Gauss error function elementwise.

    ``erf(x)`` is ``2/sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to x. Integers and
    booleans become floats, float32 by default.

    Raises:
        DTypeError: complex numbers or strings.

    Source: C's erf; TensorFlow's Erf.

    Examples:
        >>> tp.erf([0.0, 0.5, np.inf]).numpy().round(4)
        array([0.    , 0.5205, 1.    ], dtype=float32)
        >>> x = tp.asarray([0.0, 1.0, 2.0])
        >>> (0.5 * (1 + tp.erf(x / 2**0.5))).numpy().round(4)  # the normal distribution function
        array([0.5   , 0.8413, 0.9772], dtype=float32)

    """
    return dispatch_unary(ERF, x)


@chained
def tanh(x: ArrayLike, /) -> Tensor:
    """Return ``tanh x`` elementwise: the hyperbolic tangent, within [-1, 1].

    Integers and booleans become floats, float32 by default.

    Raises:
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> tp.tanh([0.0, 0.5, -np.inf]).numpy().round(4)
        array([ 0.    ,  0.4621, -1.    ], dtype=float32)

    """
    return dispatch_unary(TANH, x)


@chained
def square(x: ArrayLike, /) -> Tensor:
    """Return ``x * x`` elementwise, in the dtype of ``x``.

    Integers wrap.

    Raises:
        DTypeError: booleans or strings.

    Source: the array API standard.

    Examples:
        >>> tp.square([1.5, -3.0])
        Tensor([2.25, 9.  ], dtype=float32, device='cpu')
        >>> tp.square(tp.asarray([15, 16], dtype="uint8"))
        Tensor([225,   0], dtype=uint8, device='cpu')

    """
    return dispatch_unary(SQUARE, x)
