"""Comparison and logic from Equal, Less, LogicalAnd and LogicalNot."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.elementwise import comparison as ops
from tensorplug.ops.elementwise.complexes import imag, real

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(reads=())
decompositions.of(ops.NOT_EQUAL)(lambda a, b: ops.logical_not(ops.equal(a, b)))
# Not "not b < a": with a NaN both must be False.
decompositions.of(ops.LESS_EQUAL)(lambda a, b: ops.logical_or(ops.less(a, b), ops.equal(a, b)))
decompositions.of(ops.GREATER)(lambda a, b: ops.less(b, a))
decompositions.of(ops.GREATER_EQUAL)(lambda a, b: ops.less_equal(b, a))
decompositions.of(ops.LOGICAL_OR)(
    lambda a, b: ops.logical_not(ops.logical_and(ops.logical_not(a), ops.logical_not(b)))
)
decompositions.of(ops.LOGICAL_XOR)(lambda a, b: ops.not_equal(a, b))
decompositions.of(ops.IS_NAN)(lambda x: ops.not_equal(x, x))
# The difference of infinities or NaNs is NaN; so for each part of a complex number.
decompositions.of(ops.IS_FINITE)(
    lambda x: ops.equal(x - x, 0) if x.dtype in dt.INEXACT else ops.equal(x, x)
)


@decompositions.of(ops.IS_INF)
def is_inf(x: Tensor) -> Tensor:
    if x.dtype in dt.COMPLEX:
        return ops.logical_or(ops.isinf(real(x)), ops.isinf(imag(x)))
    if x.dtype in dt.FLOATING:
        return ops.logical_or(ops.equal(x, inf), ops.equal(x, -inf))
    return ops.not_equal(x, x)
