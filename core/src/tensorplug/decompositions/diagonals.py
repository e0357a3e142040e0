"""Diagonals from PadV2, bands by comparing row and column numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops import diagonals as ops
from tensorplug.ops.creation import full
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import (
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_or,
)
from tensorplug.ops.extents import pad
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.movement import expand_dims, reshape
from tensorplug.ops.ranges import arange

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(alone=True)


@decompositions.of(ops.DIAG)
def diag(x: Tensor, *, out: TensorType) -> Tensor:
    # Rows of n + 1 that begin with an element have n zeros too many in all.
    n = x.size
    rows = pad(reshape(x, (n, 1)), [(0, 0), (0, n)])
    return reshape(slice_(reshape(rows, (n * (n + 1),)), (0,), (n * n,)), out.shape)


@decompositions.of(ops.MATRIX_BAND_PART)
def matrix_band_part(input: Tensor, num_lower: Tensor, num_upper: Tensor) -> Tensor:
    rows, columns = _number_rows_and_columns(input)
    keep = logical_and(
        _compare_within(rows - columns, num_lower), _compare_within(columns - rows, num_upper)
    )
    return _keep(input, keep)


def _compare_within(distance: Tensor, limit: Tensor) -> Tensor:
    most = reshape(limit, ())
    return logical_or(less(most, 0), less_equal(distance, most))


@decompositions.of(ops.TRIANGLE)
def triangle(x: Tensor, *, upper: bool, k: int) -> Tensor:
    rows, columns = _number_rows_and_columns(x)
    # Numbers beyond the matrix are equivalent; this one fits into int32.
    by = max(-x.shape[-2], min(k, x.shape[-1]))
    keep = greater_equal(columns - rows, by) if upper else less_equal(columns - rows, by)
    return _keep(x, keep)


def _number_rows_and_columns(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the row numbers as a column, and the column numbers."""
    rows, columns = (arange(size, dtype=dt.int32) for size in x.shape[-2:])
    return expand_dims(rows, axis=1), columns


def _keep(x: Tensor, keep: Tensor) -> Tensor:
    return where(keep, x, full((), False if x.dtype is dt.bool_ else 0, dtype=x.dtype))
