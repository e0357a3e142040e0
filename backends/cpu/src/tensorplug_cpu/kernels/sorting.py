"""Order: the largest entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.ops import sorting as ops
from tensorplug.tables import KernelTable
from tensorplug_cpu.quiet import quietly

if TYPE_CHECKING:
    from tensorplug.spec import TensorType
    from tensorplug_cpu.arrays import Array, Call

kernels = KernelTable()


_LONG = 256  # entries from which looking for the few largest is faster than sorting


def _largest_first(x: Array, k: int) -> Array:
    """Return the indices of the ``k`` largest entries of the last axis, in order.

    A stable ascending sort of the reversed axis, read from its end, puts the lowest index
    first among equals and NaN (NumPy's largest) before everything, without negating a number.
    """
    length = x.shape[-1]
    order = np.argsort(x[..., ::-1], axis=-1, kind="stable")
    last_first: Array = order[..., : length - k - 1 if k < length else None : -1]
    indices: Array = np.subtract(length - 1, last_first)
    return indices


def _selected(x: Array, k: int) -> Array:
    """Return the same as ``_largest_first`` for a long matrix, sorting only ``k`` of each row.

    The k-th largest is found by partition. What is above it belongs to the result, and as many
    of its equals, from the lowest index on, as are missing.
    """
    length = x.shape[-1]
    last = np.partition(x, length - k, axis=-1)[:, length - k, None]
    above, equal = x > last, x == last
    if x.dtype.kind == "f":
        undefined = np.isnan(x)
        last_undefined = np.isnan(last)
        above |= undefined & ~last_undefined
        equal |= undefined & last_undefined
    missing = k - np.count_nonzero(above, axis=-1, keepdims=True)
    equal &= np.cumsum(equal, axis=-1, dtype=np.intp) <= missing
    chosen = np.nonzero(above | equal)[1].reshape(-1, k)
    order = _largest_first(np.take_along_axis(x, chosen, axis=-1), k)
    return np.take_along_axis(chosen, order, axis=-1)


@kernels.prepare(ops.TOP_K)
def top_k(x: TensorType, *, k: int, out: tuple[TensorType, TensorType]) -> Call:
    """Return values and indices of the largest entries; both orders of ``sorted`` are sorted."""
    length, shape = x.shape[-1], out[0].shape
    if not out[0].size:
        dtype = x.dtype.numpy
        return lambda _x: (np.empty(shape, dtype), np.empty(shape, np.int32))
    find = _selected if length >= _LONG and 4 * k <= length else _largest_first

    def run(x: Array) -> tuple[Array, Array]:
        rows = x.reshape(-1, length)
        indices = find(rows, k)
        values = np.take_along_axis(rows, indices, axis=-1)
        return values.reshape(shape), indices.astype(np.int32).reshape(shape)

    return quietly(run)
