"""Comparison and logic: boolean results. They stop gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract import inference
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch.calls import chained, dispatch_binary, dispatch_unary

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

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

EQUAL = KernelSpec("Equal", ("a", "b"), inference.broadcast_bool, promote=("a", "b"))
NOT_EQUAL = KernelSpec("NotEqual", ("a", "b"), inference.broadcast_bool, promote=("a", "b"))
LESS = KernelSpec(
    "Less", ("a", "b"), inference.broadcast_bool, accepts=_ORDERED, promote=("a", "b")
)
LESS_EQUAL = KernelSpec(
    "LessEqual", ("a", "b"), inference.broadcast_bool, accepts=_ORDERED, promote=("a", "b")
)
GREATER = KernelSpec(
    "Greater", ("a", "b"), inference.broadcast_bool, accepts=_ORDERED, promote=("a", "b")
)
GREATER_EQUAL = KernelSpec(
    "GreaterEqual", ("a", "b"), inference.broadcast_bool, accepts=_ORDERED, promote=("a", "b")
)
LOGICAL_AND = KernelSpec(
    "LogicalAnd", ("a", "b"), inference.broadcast_bool, accepts=dt.BOOL, promote=("a", "b")
)
LOGICAL_OR = KernelSpec(
    "LogicalOr", ("a", "b"), inference.broadcast_bool, accepts=dt.BOOL, promote=("a", "b")
)
LOGICAL_XOR = KernelSpec(
    "LogicalXor", ("a", "b"), inference.broadcast_bool, accepts=dt.BOOL, promote=("a", "b")
)
LOGICAL_NOT = KernelSpec("LogicalNot", ("x",), inference.same, accepts=dt.BOOL)
IS_FINITE = KernelSpec("IsFinite", ("x",), inference.same_shape(dt.bool_), accepts=dt.FIXED)
IS_INF = KernelSpec("IsInf", ("x",), inference.same_shape(dt.bool_), accepts=dt.FIXED)
IS_NAN = KernelSpec("IsNan", ("x",), inference.same_shape(dt.bool_), accepts=dt.FIXED)


@chained
def equal(a: Any, b: Any, /) -> Tensor:
    """Return ``a == b`` elementwise, with broadcasting, as booleans.

    NaN compares unequal to everything.
    """
    return dispatch_binary(EQUAL, a, b)


@chained
def not_equal(a: Any, b: Any, /) -> Tensor:
    """Return ``a != b`` elementwise, with broadcasting, as booleans.

    NaN compares unequal to everything.
    """
    return dispatch_binary(NOT_EQUAL, a, b)


@chained
def less(a: Any, b: Any, /) -> Tensor:
    """Return ``a < b`` elementwise, with broadcasting, as booleans. False where either is NaN.

    Strings are ordered by the code points of their characters.
    """
    return dispatch_binary(LESS, a, b)


@chained
def less_equal(a: Any, b: Any, /) -> Tensor:
    """Return ``a <= b`` elementwise, with broadcasting, as booleans. False where either is NaN.

    Strings are ordered by the code points of their characters.
    """
    return dispatch_binary(LESS_EQUAL, a, b)


@chained
def greater(a: Any, b: Any, /) -> Tensor:
    """Return ``a > b`` elementwise, with broadcasting, as booleans. False where either is NaN.

    Strings are ordered by the code points of their characters.
    """
    return dispatch_binary(GREATER, a, b)


@chained
def greater_equal(a: Any, b: Any, /) -> Tensor:
    """Return ``a >= b`` elementwise, with broadcasting, as booleans. False where either is NaN.

    Strings are ordered by the code points of their characters.
    """
    return dispatch_binary(GREATER_EQUAL, a, b)


@chained
def logical_and(a: Any, b: Any, /) -> Tensor:
    """Return ``a and b`` elementwise, with broadcasting, as booleans.

    Both operands must be boolean.
    """
    return dispatch_binary(LOGICAL_AND, a, b)


@chained
def logical_or(a: Any, b: Any, /) -> Tensor:
    """Return ``a or b`` elementwise, with broadcasting, as booleans.

    Both operands must be boolean.
    """
    return dispatch_binary(LOGICAL_OR, a, b)


@chained
def logical_not(x: Any, /) -> Tensor:
    """Return ``not x`` elementwise; ``x`` must be boolean."""
    return dispatch_unary(LOGICAL_NOT, x)


@chained
def logical_xor(a: Any, b: Any, /) -> Tensor:
    """Return whether exactly one of ``a`` and ``b`` is true, elementwise.

    Both operands must be boolean.
    """
    return dispatch_binary(LOGICAL_XOR, a, b)


@chained
def isfinite(x: Any, /) -> Tensor:
    """Return whether ``x`` is neither infinite nor NaN, elementwise, as booleans.

    A complex number is finite if both its parts are; integers always are.
    """
    return dispatch_unary(IS_FINITE, x)


@chained
def isinf(x: Any, /) -> Tensor:
    """Return whether ``x`` is infinite, of either sign, elementwise, as booleans.

    A complex number is infinite if one of its parts is, even where the other is NaN.
    """
    return dispatch_unary(IS_INF, x)


@chained
def isnan(x: Any, /) -> Tensor:
    """Return whether ``x`` is NaN elementwise, as booleans.

    A complex number is NaN if one of its parts is.
    """
    return dispatch_unary(IS_NAN, x)
