"""Comparison and logic: boolean results. They stop gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract import inference
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch.calls import chained, dispatch_binary, dispatch_unary

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.expression_rules import Given
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, TensorLike

__all__ = [
    "equal",
    "greater",
    "greater_equal",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
]

_ORDERED = dt.REAL | {dt.string}  # strings by their code points


def _define(name: str, expression: Given | None, accepts: frozenset[DType] = dt.ANY) -> KernelSpec:
    return KernelSpec(
        name,
        ("a", "b"),
        inference.broadcast_bool,
        accepts=accepts,
        promote=("a", "b"),
        expression=expression,
        exact=False,
        elementwise=True,
    )


EQUAL = _define("Equal", "equal")
NOT_EQUAL = _define("NotEqual", None)
LESS = _define("Less", "less", _ORDERED)
LESS_EQUAL = _define("LessEqual", "less_equal", _ORDERED)
GREATER = _define("Greater", lambda a, b: a > b, _ORDERED)
GREATER_EQUAL = _define("GreaterEqual", lambda a, b: a >= b, _ORDERED)
LOGICAL_AND = _define("LogicalAnd", "logical_and", dt.BOOL)
LOGICAL_OR = _define("LogicalOr", "logical_or", dt.BOOL)
LOGICAL_XOR = _define("LogicalXor", None, dt.BOOL)
LOGICAL_NOT = KernelSpec(
    "LogicalNot", ("x",), inference.same, accepts=dt.BOOL, expression="logical_not"
)
IS_FINITE = KernelSpec(
    "IsFinite", ("x",), inference.same_shape(dt.bool_), accepts=dt.FIXED, elementwise=True
)
IS_INF = KernelSpec(
    "IsInf", ("x",), inference.same_shape(dt.bool_), accepts=dt.FIXED, elementwise=True
)
IS_NAN = KernelSpec(
    "IsNan", ("x",), inference.same_shape(dt.bool_), accepts=dt.FIXED, elementwise=True
)


@chained
def equal(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Return ``a == b`` elementwise, as booleans. NaN equals nothing, not even itself.

    Shapes broadcast; dtypes are promoted, and a Python number takes that of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: the dtypes do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.equal([1, 2, 3], [1.0, 5.0, 3.0])
        Tensor([ True, False,  True], dtype=bool, device='cpu')
        >>> tp.equal([np.nan, 0.0], [np.nan, -0.0])
        Tensor([False,  True], dtype=bool, device='cpu')
        >>> tp.equal(["yes", "no"], "yes")
        Tensor([ True, False], dtype=bool, device='cpu')

    """
    return dispatch_binary(EQUAL, a, b)


@chained
def not_equal(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Return ``a != b`` elementwise, as booleans. NaN differs from everything, even itself.

    Shapes broadcast; dtypes are promoted, and a Python number takes that of the tensor beside it.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: the dtypes do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.not_equal([1, 2, 3], [1, 5, 3])
        Tensor([False,  True, False], dtype=bool, device='cpu')
        >>> tp.not_equal([np.nan], [np.nan])
        Tensor([ True], dtype=bool, device='cpu')

    """
    return dispatch_binary(NOT_EQUAL, a, b)


@chained
def less(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Return ``a < b`` elementwise, as booleans; False where either is NaN.

    Shapes broadcast; dtypes are promoted, and a Python number takes that of the tensor beside it.
    Strings are ordered by the code points of their characters.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers, only booleans, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.less([1.0, 2.0, np.nan], 2.0)
        Tensor([ True, False, False], dtype=bool, device='cpu')
        >>> tp.less(["Zoe", "adam"], "adam")
        Tensor([ True, False], dtype=bool, device='cpu')

    """
    return dispatch_binary(LESS, a, b)


@chained
def less_equal(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Return ``a <= b`` elementwise, as booleans; False where either is NaN.

    Shapes broadcast; dtypes are promoted, and a Python number takes that of the tensor beside it.
    Strings are ordered by the code points of their characters.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers, only booleans, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.less_equal([1.0, 2.0, np.nan], 2.0)
        Tensor([ True,  True, False], dtype=bool, device='cpu')

    """
    return dispatch_binary(LESS_EQUAL, a, b)


@chained
def greater(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Return ``a > b`` elementwise, as booleans; False where either is NaN.

    Shapes broadcast; dtypes are promoted, and a Python number takes that of the tensor beside it.
    Strings are ordered by the code points of their characters.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers, only booleans, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.greater([1.0, 3.0, np.nan], 2.0)
        Tensor([False,  True, False], dtype=bool, device='cpu')
        >>> tp.greater([[1], [5]], [2, 4])
        Tensor([[False, False],
                [ True,  True]], dtype=bool, device='cpu')

    """
    return dispatch_binary(GREATER, a, b)


@chained
def greater_equal(a: TensorLike, b: TensorLike, /) -> Tensor:
    """Return ``a >= b`` elementwise, as booleans; False where either is NaN.

    Shapes broadcast; dtypes are promoted, and a Python number takes that of the tensor beside it.
    Strings are ordered by the code points of their characters.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: complex numbers, only booleans, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.greater_equal([1.0, 2.0, np.nan], 2.0)
        Tensor([False,  True, False], dtype=bool, device='cpu')

    """
    return dispatch_binary(GREATER_EQUAL, a, b)


@chained
def logical_and(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a and b`` elementwise, as booleans.

    Both operands must be boolean; their shapes broadcast.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: an operand is not boolean. Compare it first: ``x != 0``.

    Source: the array API standard.

    Examples:
        >>> tp.logical_and([True, True, False], [True, False, False])
        Tensor([ True, False, False], dtype=bool, device='cpu')
        >>> x = tp.asarray([-1.0, 0.5, 3.0])
        >>> tp.logical_and(x > 0, x < 1)
        Tensor([False,  True, False], dtype=bool, device='cpu')

    """
    return dispatch_binary(LOGICAL_AND, a, b)


@chained
def logical_or(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a or b`` elementwise, as booleans.

    Both operands must be boolean; their shapes broadcast.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: an operand is not boolean. Compare it first: ``x != 0``.

    Source: the array API standard.

    Examples:
        >>> tp.logical_or([True, True, False], [True, False, False])
        Tensor([ True,  True, False], dtype=bool, device='cpu')

    """
    return dispatch_binary(LOGICAL_OR, a, b)


@chained
def logical_not(x: ArrayLike, /) -> Tensor:
    """Return ``not x`` elementwise; ``x`` must be boolean.

    Raises:
        DTypeError: ``x`` is not boolean.

    Source: the array API standard.

    Examples:
        >>> tp.logical_not([True, False])
        Tensor([False,  True], dtype=bool, device='cpu')

    """
    return dispatch_unary(LOGICAL_NOT, x)


@chained
def logical_xor(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return whether exactly one of ``a`` and ``b`` is true, elementwise.

    Both operands must be boolean; their shapes broadcast.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: an operand is not boolean. Compare it first: ``x != 0``.

    Source: the array API standard.

    Examples:
        >>> tp.logical_xor([True, True, False], [True, False, False])
        Tensor([False,  True, False], dtype=bool, device='cpu')

    """
    return dispatch_binary(LOGICAL_XOR, a, b)


@chained
def isfinite(x: ArrayLike, /) -> Tensor:
    """Return whether ``x`` is neither infinite nor NaN, elementwise, as booleans.

    A complex number is finite if both its parts are; integers always are.

    Raises:
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> tp.isfinite([1.0, np.inf, np.nan])
        Tensor([ True, False, False], dtype=bool, device='cpu')

    """
    return dispatch_unary(IS_FINITE, x)


@chained
def isinf(x: ArrayLike, /) -> Tensor:
    """Return whether ``x`` is infinite, of either sign, elementwise, as booleans.

    A complex number is infinite if one of its parts is, even where the other is NaN.

    Raises:
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> tp.isinf([1.0, np.inf, -np.inf, np.nan])
        Tensor([False,  True,  True, False], dtype=bool, device='cpu')

    """
    return dispatch_unary(IS_INF, x)


@chained
def isnan(x: ArrayLike, /) -> Tensor:
    """Return whether ``x`` is NaN elementwise, as booleans.

    A complex number is NaN if one of its parts is.

    Raises:
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> x = tp.asarray([1.0, np.nan, np.inf])
        >>> tp.isnan(x)
        Tensor([False,  True, False], dtype=bool, device='cpu')
        >>> tp.where(tp.isnan(x), 0.0, x)
        Tensor([ 1.,  0., inf], dtype=float32, device='cpu')

    """
    return dispatch_unary(IS_NAN, x)
