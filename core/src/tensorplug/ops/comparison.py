"""Comparison and logic: boolean results. They stop gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract import inference
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch.calls import chained, dispatch_binary, dispatch_unary

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.expression_rules import Given
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


def _define(name: str, expression: Given | None, accepts: frozenset[DType] = dt.ANY) -> KernelSpec:
    return KernelSpec(
        name,
        ("a", "b"),
        inference.broadcast_bool,
        accepts=accepts,
        promote=("a", "b"),
        expression=expression,
        exact=False,
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
