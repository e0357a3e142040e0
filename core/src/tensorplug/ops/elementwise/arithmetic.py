"""Arithmetic of two operands, elementwise: specs and public functions.

Operands broadcast by NumPy's rules and are promoted to a common dtype; Python scalars are weak.
The formulas are the definitions; the source is the array API standard 2025.12 unless a docstring
says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract import inference
from tensorplug.contract.expressions import function
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import (
    chained,
    dispatch,
    dispatch_binary,
)
from tensorplug.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.expression_rules import Given
    from tensorplug.contract.expressions import Expression
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike


__all__ = [
    "add",
    "add_n",
    "div_no_nan",
    "divide",
    "floor_divide",
    "maximum",
    "minimum",
    "multiply",
    "pow",
    "remainder",
    "squared_difference",
    "subtract",
]


def _define_binary(
    name: str, expression: Given, accepts: frozenset[DType] = dt.NUMERIC, *, inexact: bool = False
) -> KernelSpec:
    return KernelSpec(
        name,
        ("a", "b"),
        inference.broadcast,
        accepts=accepts,
        promote=("a", "b"),
        inexact=inexact,
        expression=expression,
    )


def _power(a: Expression, b: Expression) -> Expression:
    """Return ``a ** b``; the exponents 1, 2 and -1, which are frequent, need no function."""
    if b.op == "constant" and a.dtype in dt.FLOATING:
        if b.value == 1:
            return a
        if b.value == 2:
            return a * a
        if b.value == -1:
            return 1 / a
    return function("pow", a, b)


ADD = _define_binary("Add", "add")
SUB = _define_binary("Sub", "subtract")
MULTIPLY = _define_binary("Multiply", "multiply")
REAL_DIV = _define_binary("RealDiv", "divide", inexact=True)
DIV_NO_NAN = KernelSpec(
    "DivNoNan",
    ("a", "b"),
    inference.broadcast,
    accepts=dt.NUMERIC,
    promote=("a", "b"),
    inexact=True,
    elementwise=True,
)
FLOOR_DIV = _define_binary("FloorDiv", "floor_divide", dt.REAL)
MOD = _define_binary("Mod", "remainder", dt.REAL)
POW = _define_binary("Pow", _power)
MAXIMUM = _define_binary("Maximum", "maximum", dt.REAL)
MINIMUM = _define_binary("Minimum", "minimum", dt.REAL)
SQUARED_DIFFERENCE = KernelSpec(
    "SquaredDifference",
    ("a", "b"),
    inference.broadcast,
    accepts=dt.NUMERIC,
    promote=("a", "b"),
    elementwise=True,
)


def _infer_add_n(xs: list[TensorType]) -> TensorType:
    if not xs:
        raise ArgumentError("xs is empty")
    for x in xs[1:]:
        if x.shape != xs[0].shape:
            raise ShapeError(f"xs must have the same shape, got {xs[0]} and {x}")
    return xs[0]


ADD_N = KernelSpec(
    "AddN", ("xs[]",), _infer_add_n, accepts=dt.NUMERIC, promote=("xs",), elementwise=True
)


@chained
def add(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a + b`` elementwise.

    Integers wrap.
    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: only booleans (see ``logical_or``), or strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.add([1.0, 2.0], 10)
        Tensor([11., 12.], dtype=float32, device='cpu')
        >>> tp.add([[1], [2]], [10, 20])
        Tensor([[11, 21],
                [12, 22]], dtype=int32, device='cpu')
        >>> tp.add(tp.asarray([200], dtype="uint8"), 100)
        Tensor([44], dtype=uint8, device='cpu')

    """
    return dispatch_binary(ADD, a, b)


def add_n(xs: Sequence[ArrayLike], /) -> Tensor:
    """Return the sum of the tensors ``xs``, a list or tuple, which have the same shape.

    Their dtypes are promoted; integers wrap.

    Raises:
        ShapeError: the shapes differ.
        DTypeError: only booleans, or strings, or dtypes that do not promote.
        ArgumentError: ``xs`` is empty or not a list.

    Source: TensorFlow's AddN.

    Examples:
        >>> tp.add_n([[1, 2], [10, 20], [100.0, 200.0]])
        Tensor([111., 222.], dtype=float32, device='cpu')

    """
    if not isinstance(xs, list | tuple):
        raise ArgumentError(f"add_n: xs must be a list of tensors, got {type(xs).__name__}")
    return dispatch(ADD_N, list(xs))


@chained
def subtract(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a - b`` elementwise.

    Integers wrap.
    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: only booleans (see ``logical_xor``), or strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.subtract([5.0, 7.0], [1.0, 10.0])
        Tensor([ 4., -3.], dtype=float32, device='cpu')
        >>> tp.subtract(tp.asarray([1], dtype="uint8"), 2)
        Tensor([255], dtype=uint8, device='cpu')

    """
    return dispatch_binary(SUB, a, b)


@chained
def multiply(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a * b`` elementwise.

    Integers wrap.
    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: only booleans (see ``logical_and``), or strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.multiply([1.0, 2.0, 3.0], 0.5)
        Tensor([0.5, 1. , 1.5], dtype=float32, device='cpu')
        >>> tp.multiply([[1], [2]], [3, 4])
        Tensor([[3, 4],
                [6, 8]], dtype=int32, device='cpu')

    """
    return dispatch_binary(MULTIPLY, a, b)


@chained
def divide(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a / b`` elementwise.

    Integers and booleans become floats, float32 by default. Division by 0 gives an infinity, and
    NaN for 0 / 0.
    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.divide([1, 3], 2)
        Tensor([0.5, 1.5], dtype=float32, device='cpu')
        >>> tp.divide([1.0, -1.0, 0.0], 0.0)
        Tensor([ inf, -inf,  nan], dtype=float32, device='cpu')

    """
    return dispatch_binary(REAL_DIV, a, b)


@chained
def div_no_nan(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a / b`` elementwise, and 0 where ``b`` is 0.

    Integers and booleans become floats, float32 by default. The gradients are those of the
    quotient, and 0 where ``b`` is 0.
    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: strings, or dtypes that do not promote.

    Source: TensorFlow's DivNoNan.

    Examples:
        >>> tp.div_no_nan([1.0, 3.0], [0.0, 2.0])
        Tensor([0. , 1.5], dtype=float32, device='cpu')

    """
    return dispatch_binary(DIV_NO_NAN, a, b)


@chained
def floor_divide(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``floor(a / b)`` elementwise: the quotient rounded down.

    Integers stay integers; an integer divided by 0 gives 0.
    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers, only booleans, or strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.floor_divide([7, -7], 2)
        Tensor([ 3, -4], dtype=int32, device='cpu')
        >>> tp.floor_divide([7.0, -7.0], 2.0)
        Tensor([ 3., -4.], dtype=float32, device='cpu')

    """
    return dispatch_binary(FLOOR_DIV, a, b)


@chained
def remainder(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a - b * floor(a / b)`` elementwise: the remainder with the sign of ``b``.

    An integer modulo 0 gives 0; a float gives NaN.
    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers, only booleans, or strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.remainder([7, -7, 7, -7], [3, 3, -3, -3])
        Tensor([ 1,  2, -2, -1], dtype=int32, device='cpu')
        >>> tp.remainder([5.5, 1.0], [2.0, 0.0])
        Tensor([1.5, nan], dtype=float32, device='cpu')

    """
    return dispatch_binary(MOD, a, b)


@chained
def pow(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a ** b`` elementwise.

    Integers wrap; an integer to a negative power is rounded towards 0, and 0 gives 0. A negative
    float to a power that is not whole gives NaN.
    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: only booleans, or strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.pow([1.0, 2.0, 3.0], 2)
        Tensor([1., 4., 9.], dtype=float32, device='cpu')
        >>> tp.pow([2, -1, 3], -1)
        Tensor([ 0, -1,  0], dtype=int32, device='cpu')
        >>> tp.pow([-8.0, 4.0], 0.5)
        Tensor([nan,  2.], dtype=float32, device='cpu')

    """
    return dispatch_binary(POW, a, b)


@chained
def maximum(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return the larger of ``a`` and ``b`` elementwise; NaN if either is NaN.

    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers, only booleans, or strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.maximum([1.0, 5.0, np.nan], [3.0, 2.0, 0.0])
        Tensor([ 3.,  5., nan], dtype=float32, device='cpu')
        >>> tp.maximum([-1.0, 2.0], 0.0)
        Tensor([0., 2.], dtype=float32, device='cpu')

    """
    return dispatch_binary(MAXIMUM, a, b)


@chained
def minimum(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return the smaller of ``a`` and ``b`` elementwise; NaN if either is NaN.

    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers, only booleans, or strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.minimum([1.0, 5.0, np.nan], [3.0, 2.0, 0.0])
        Tensor([ 1.,  2., nan], dtype=float32, device='cpu')
        >>> tp.minimum([0.5, 2.0], 1.0)
        Tensor([0.5, 1. ], dtype=float32, device='cpu')

    """
    return dispatch_binary(MINIMUM, a, b)


@chained
def squared_difference(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``(a - b)**2`` elementwise.

    Integers wrap.
    Shapes broadcast. Dtypes are promoted; a Python number takes the dtype of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: only booleans, or strings, or dtypes that do not promote.

    Source: TensorFlow's SquaredDifference.

    Examples:
        >>> tp.squared_difference([1.0, 2.0], [4.0, 2.5])
        Tensor([9.  , 0.25], dtype=float32, device='cpu')

    """
    return dispatch_binary(SQUARED_DIFFERENCE, a, b)
