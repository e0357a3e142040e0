"""Binary search in sorted sequences."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Literal

import numpy as np

from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.execution.floating_point import kernel, without_warnings
from tensorplug_cpu.jit.families.positions import searcher
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

    Side = Literal["left", "right"]

kernels = Kernels()

_HEAVY = 64  # values per row from which a call per row costs less than searching all in step


@kernels.prepare(specs.SEARCH_SORTED, because="faster")
def search_sorted(
    sorted_sequence: TensorType, values: TensorType, *, side: Side, out: TensorType
) -> Call:
    """Search one sequence by NumPy; batches row by row, or, if many rows are short, in step."""
    rank = sorted_sequence.rank
    if sorted_sequence.dtype is values.dtype:
        native = _native(sorted_sequence, values, right=side == "right")
        if native is not None:
            return native
    if rank == 1:
        return kernel(lambda x, v: np.searchsorted(x, v, side=side).astype(np.int32), out)
    rows, length = prod(sorted_sequence.shape[:-1]), sorted_sequence.shape[-1]
    count, shape = values.shape[-1], values.shape
    find = _row_by_row if rows <= 4 or count >= _HEAVY else _in_step

    def run(x: Array, v: Array) -> Array:
        return find(x.reshape(rows, length), v.reshape(rows, count), side).reshape(shape)

    return kernel(run, out)


def _native(sorted_sequence: TensorType, values: TensorType, *, right: bool) -> Call | None:
    """Return a loop for one sequence or for batches, None without one."""
    shape, length = values.shape, sorted_sequence.shape[-1]
    rows = prod(sorted_sequence.shape[:-1])
    count = values.size // max(rows, 1)
    native = searcher(rows, length, count, values.dtype.numpy, right=right)
    if native is None:
        return None
    return without_warnings(lambda x, v: native(x, v).reshape(shape))


def _row_by_row(x: Array, values: Array, side: Side) -> Array:
    positions = np.empty(values.shape, np.int32)
    for row in range(len(x)):
        positions[row] = np.searchsorted(x[row], values[row], side=side)
    return positions


def _in_step(x: Array, values: Array, side: Side) -> Array:
    """Halve the windows of all values at once; a NaN comes after all numbers."""
    rows, length = x.shape
    first = np.zeros(values.shape, np.int64)
    if not length:
        return first.astype(np.int32)
    end = np.full(values.shape, length)
    starts = np.arange(rows)[:, None] * length
    flat = np.ascontiguousarray(x).reshape(-1)
    floating = x.dtype.kind == "f"
    undefined = np.isnan(values) if floating else None
    for _ in range(length.bit_length()):
        middle = (first + end) >> 1
        here = flat[np.minimum(middle, length - 1) + starts]
        beyond = here < values if side == "left" else here <= values
        if undefined is not None:
            # A number comes before a NaN, and two NaN are equal.
            beyond |= undefined & ((here == here) | (side == "right"))  # noqa: PLR0124  # not NaN
        beyond &= first < end
        first = np.where(beyond, middle + 1, first)
        end = np.where(beyond, end, middle)
    return first.astype(np.int32)
