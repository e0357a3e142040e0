"""Comparison and logic from Equal, Less, LogicalAnd and LogicalNot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.ops import comparison as ops
from tensorplug.tables import DecompositionTable

if TYPE_CHECKING:
    from tensorplug.tensor import Tensor

decompositions = DecompositionTable()


@decompositions.of(ops.NOT_EQUAL)
def not_equal(a: Tensor, b: Tensor) -> Tensor:
    return ops.logical_not(ops.equal(a, b))


@decompositions.of(ops.LESS_EQUAL)
def less_equal(a: Tensor, b: Tensor) -> Tensor:
    # Not "not b < a": with a NaN both must be False.
    return ops.logical_or(ops.less(a, b), ops.equal(a, b))


@decompositions.of(ops.GREATER)
def greater(a: Tensor, b: Tensor) -> Tensor:
    return ops.less(b, a)


@decompositions.of(ops.GREATER_EQUAL)
def greater_equal(a: Tensor, b: Tensor) -> Tensor:
    return ops.less_equal(b, a)


@decompositions.of(ops.LOGICAL_OR)
def logical_or(a: Tensor, b: Tensor) -> Tensor:
    return ops.logical_not(ops.logical_and(ops.logical_not(a), ops.logical_not(b)))
