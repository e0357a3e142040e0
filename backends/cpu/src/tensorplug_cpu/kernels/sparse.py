"""Sparse tensors, as on the host of any device; sums by the segment sums of this backend."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from tensorplug.algorithms import host_functions
from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.segments import row_sums

if TYPE_CHECKING:
    import numpy as np

    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()

# Columns, from and up to which sorted rows are added faster by NumPy's `reduceat` than by what
# takes them in any order (a million elements, 3 to 1000 rows a segment).
_FEW: Final = range(2, 16)


def _sums(ids: Array, rows: Array, count: int) -> Array:
    """Return the sums of rows, in their dtype or a wider one; ids ascend."""
    if rows.shape[1] in _FEW:
        return host_functions.sparse.sums_of(rows, ids, count)
    return row_sums(ids, rows, count)


@kernels.prepare(specs.SPARSE_SEGMENT_SUM, because="faster")
def sparse_segment_sum(data: TensorType, indices: TensorType, segment_ids: TensorType) -> Call:
    rows, rest = data.shape[0], data.shape[1:]
    width, dtype = prod(rest), data.dtype.numpy

    def run(data: Array, indices: Array, segment_ids: Array) -> Array:
        picked, ids, count = host_functions.sparse.check_segments(indices, segment_ids, rows)
        taken = data.reshape(rows, width).take(picked, axis=0)
        sums = _sums(ids, taken, count)
        return sums.astype(dtype, copy=False).reshape(count, *rest)

    return without_warnings(run)


@kernels.prepare(specs.SPARSE_SEGMENT_MEAN, because="faster")
def sparse_segment_mean(data: TensorType, indices: TensorType, segment_ids: TensorType) -> Call:
    rows, rest = data.shape[0], data.shape[1:]
    width, dtype = prod(rest), data.dtype.numpy
    wide: np.dtype[np.generic] = host_functions.sparse.widened(dtype)

    def run(data: Array, indices: Array, segment_ids: Array) -> Array:
        picked, ids, count = host_functions.sparse.check_segments(indices, segment_ids, rows)
        taken = data.reshape(rows, width).take(picked, axis=0).astype(wide, copy=False)
        means = host_functions.sparse.mean_of(_sums(ids, taken, count), ids)
        return means.astype(dtype, copy=False).reshape(count, *rest)

    return without_warnings(run)
