"""Binary search for all values at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops import searching as ops
from tensorplug.ops.creation import zeros
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import equal, less, logical_and, logical_not, logical_or
from tensorplug.ops.indexing.indexing import gather
from tensorplug.ops.movement import reshape
from tensorplug.ops.ranges import arange

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(alone=True)


@decompositions.of(ops.SEARCH_SORTED)
def search_sorted(sorted_sequence: Tensor, values: Tensor, *, side: str) -> Tensor:
    """Halve a window of places in each value's row until it holds one place."""
    if sorted_sequence.dtype is dt.bool_:
        # In a dtype that every backend has.
        sorted_sequence, values = (astype(x, dt.int32) for x in (sorted_sequence, values))
    length = sorted_sequence.shape[-1]
    first = zeros(values.shape, dtype=dt.int32)
    if not values.size or not length:
        return first
    row = reshape(sorted_sequence, (-1,))
    starts: Tensor | int = 0
    if sorted_sequence.ndim > 1:
        rows = row.shape[0] // length
        starts = reshape(arange(rows, dtype=dt.int32) * length, (*values.shape[:-1], 1))
    end = first + length
    for _ in range(length.bit_length()):
        middle = (first + end) // 2  # below `end` while the window is open
        inside = less(middle, length)
        at = where(inside, middle, length - 1)
        here = gather(row, at + starts)
        beyond = (
            _comes_before(here, values)
            if side == "left"
            else logical_not(_comes_before(values, here))
        )
        beyond = logical_and(beyond, less(first, end))
        first = where(beyond, middle + 1, first)
        end = where(beyond, end, middle)
    return first


def _comes_before(a: Tensor, b: Tensor) -> Tensor:
    """Return whether ``a`` comes before ``b``; a NaN comes after all numbers."""
    if a.dtype not in dt.FLOATING:
        return less(a, b)
    return logical_or(less(a, b), logical_and(equal(a, a), logical_not(equal(b, b))))


decompositions.of(ops.LOWER_BOUND)(
    lambda sorted_sequence, values: ops.searchsorted(sorted_sequence, values, side="left")
)
decompositions.of(ops.UPPER_BOUND)(
    lambda sorted_sequence, values: ops.searchsorted(sorted_sequence, values, side="right")
)
