"""Products of matrices: blocks multiplied by NumPy's BLAS, and added up as a tree."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import KernelTable, TensorType, specs
from tensorplug_dask.blocks import WithoutWarnings, blockwise, chunks_of, elementwise, pattern
from tensorplug_dask.kernels.reduction import tree
from tensorplug_dask.native import native

if TYPE_CHECKING:
    import dask.array as da

    Array = np.ndarray[Any, Any]

kernels = KernelTable()


def _turned(x: Any, *, transpose: bool) -> Any:
    return x.swapaxes(-1, -2) if transpose else x


def _multiplied(left: Array, right: Array) -> Any:
    """float16 is multiplied in float32, which BLAS has."""
    if left.dtype == np.float16:
        return np.matmul(left.astype(np.float32), right.astype(np.float32))
    return np.matmul(left, right)


def _product(
    a: da.Array, b: da.Array, *, transpose_a: bool, transpose_b: bool, out: TensorType, limit: int
) -> da.Array:
    """Multiply like ``dask.array.matmul``, without warnings, and add in a wider dtype."""
    left, right = _turned(a, transpose=transpose_a), _turned(b, transpose=transpose_b)
    dtype = out.dtype.numpy
    if max(left.chunks[-2]) * max(right.chunks[-1]) * dtype.itemsize > 2 * limit:
        rows, columns = chunks_of(out.shape[-2:], dtype, limit)  # long ones make a large square
        left, right = left.rechunk({left.ndim - 2: rows}), right.rechunk({right.ndim - 1: columns})
    batch = pattern(out.rank + 2)[: out.rank - 2]
    row, inner, column = 2, 1, 0
    of_left, of_right = batch[out.rank - left.ndim :], batch[out.rank - right.ndim :]
    work = out.dtype.compute.numpy
    parts = blockwise(
        WithoutWarnings(_part, "matmul"),
        (*batch, row, inner, column),
        [(left, (*of_left, row, inner)), (right, (*of_right, inner, column))],
        work,
        {inner: 1},
    )
    if parts.numblocks[-2] > 1:
        return tree(np.add, parts, (parts.ndim - 2,), out.dtype, keep=False)
    return elementwise(partial(_as, dtype=dtype), [parts[..., 0, :]], out, limit)


def _part(left: Array, right: Array) -> Any:
    return _multiplied(left, right)[..., None, :]


def _as(x: Array, *, dtype: Any) -> Any:
    return x.astype(dtype, copy=False)


@native(kernels, specs.BATCH_MAT_MUL, chunked=_product)
def batch_mat_mul(
    a: Array, b: Array, *, transpose_a: bool, transpose_b: bool, out: TensorType
) -> Any:
    found = _multiplied(_turned(a, transpose=transpose_a), _turned(b, transpose=transpose_b))
    return found.astype(out.dtype.numpy, copy=False)
