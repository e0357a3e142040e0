"""Comparison and logic: boolean results. Their gradients are zero everywhere (stops)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug import dtypes as dt
from tensorplug import inference
from tensorplug.dispatch import chained, dispatch_binary, dispatch_unary
from tensorplug.spec import KernelSpec

if TYPE_CHECKING:
    from tensorplug.tensor import Tensor

__all__ = [
    "equal",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "not_equal",
]

EQUAL = KernelSpec(
    "Equal", ("a", "b"), inference.broadcast_bool, accepts=dt.FIXED, promote=("a", "b")
)
NOT_EQUAL = KernelSpec(
    "NotEqual", ("a", "b"), inference.broadcast_bool, accepts=dt.FIXED, promote=("a", "b")
)
LESS = KernelSpec(
    "Less", ("a", "b"), inference.broadcast_bool, accepts=dt.REAL, promote=("a", "b")
)
LESS_EQUAL = KernelSpec(
    "LessEqual", ("a", "b"), inference.broadcast_bool, accepts=dt.REAL, promote=("a", "b")
)
GREATER = KernelSpec(
    "Greater", ("a", "b"), inference.broadcast_bool, accepts=dt.REAL, promote=("a", "b")
)
GREATER_EQUAL = KernelSpec(
    "GreaterEqual", ("a", "b"), inference.broadcast_bool, accepts=dt.REAL, promote=("a", "b")
)
LOGICAL_AND = KernelSpec(
    "LogicalAnd", ("a", "b"), inference.broadcast_bool, accepts=dt.BOOL, promote=("a", "b")
)
LOGICAL_OR = KernelSpec(
    "LogicalOr", ("a", "b"), inference.broadcast_bool, accepts=dt.BOOL, promote=("a", "b")
)
LOGICAL_NOT = KernelSpec("LogicalNot", ("x",), inference.same, accepts=dt.BOOL)


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
    """Return ``a < b`` elementwise, with broadcasting, as booleans. False where either is NaN."""
    return dispatch_binary(LESS, a, b)


@chained
def less_equal(a: Any, b: Any, /) -> Tensor:
    """Return ``a <= b`` elementwise, with broadcasting, as booleans. False where either is NaN."""
    return dispatch_binary(LESS_EQUAL, a, b)


@chained
def greater(a: Any, b: Any, /) -> Tensor:
    """Return ``a > b`` elementwise, with broadcasting, as booleans. False where either is NaN."""
    return dispatch_binary(GREATER, a, b)


@chained
def greater_equal(a: Any, b: Any, /) -> Tensor:
    """Return ``a >= b`` elementwise, with broadcasting, as booleans. False where either is NaN."""
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
