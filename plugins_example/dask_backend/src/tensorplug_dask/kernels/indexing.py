"""Reading and writing at indices that are computed, and so unknown when the graph is made.

Each block is asked for what of it an index names, and all answers are put together.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np

from tensorplug.algorithms import scatter_depth
from tensorplug.plugin import KernelTable, OutOfRangeError, TensorType, specs
from tensorplug_dask.blocks import WithoutWarnings, chunks_of, fresh, meta, starts_of
from tensorplug_dask.kernels.reduction import tree, wider
from tensorplug_dask.native import native

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]
    Shape = tuple[int, ...]

kernels = KernelTable()


def _positions(indices: Array, length: int) -> Array:
    """Count negative indices from the end; NumPy's own error would not be one of ours."""
    outside = indices[(indices < -length) | (indices >= length)]
    if outside.size:
        raise OutOfRangeError(f"index {outside[0]} is out of range for an axis of length {length}")
    at = indices.astype(np.intp)
    return np.where(at < 0, at + length, at)


def _picked(x: Array, at: Array, axis: int, batch_dims: int) -> Array:
    """Take slices along an axis at positions, with one set of them for each batch."""
    batch, before = math.prod(x.shape[:batch_dims]), math.prod(x.shape[batch_dims:axis])
    after, count = math.prod(x.shape[axis + 1 :]), math.prod(at.shape[batch_dims:])
    flat = x.reshape(batch, before, x.shape[axis], after)
    rows = at.reshape(batch, 1, count)
    picked = flat[np.arange(batch)[:, None, None], np.arange(before)[:, None], rows]
    return picked.reshape((*x.shape[:axis], *at.shape[batch_dims:], *x.shape[axis + 1 :]))


def _gathered(
    x: da.Array, indices: da.Array, *, axis: int, batch_dims: int, out: TensorType, limit: int
) -> da.Array:
    """Add up what each block of the axis gives: zeros for indices that lie in others."""
    places = indices.ndim - batch_dims
    x_axes = tuple(f"x{index}" for index in range(x.ndim))
    i_axes = (*x_axes[:batch_dims], *(f"i{index}" for index in range(places)))
    indices = _narrowed(x, indices, axis, batch_dims, limit)
    _, (x, indices) = da.core.unify_chunks(x, x_axes, indices, i_axes, warn=False)
    starts = starts_of(x.chunks[axis])
    parts = da.blockwise(
        WithoutWarnings(
            partial(_gather_part, axis=axis, batch_dims=batch_dims, length=x.shape[axis]), "gather"
        ),
        (*x_axes[:axis], *i_axes[batch_dims:], *x_axes[axis + 1 :], x_axes[axis]),
        x,
        x_axes,
        indices,
        i_axes,
        starts,
        (x_axes[axis],),
        name=fresh("gather"),
        adjust_chunks={x_axes[axis]: 1},
        align_arrays=False,
        meta=meta(x.dtype, out.rank + 1),
    )
    if parts.numblocks[-1] == 1:
        return parts[..., 0]
    return tree(_Overlay, parts, (out.rank,), out.dtype, keep=False, work=x.dtype)


def _narrowed(x: da.Array, indices: da.Array, axis: int, batch_dims: int, limit: int) -> da.Array:
    """Return the indices in chunks so small that what they pick fits into a block."""
    slices = math.prod(max(chunk) for at, chunk in enumerate(x.chunks) if at != axis)
    chosen = math.prod(max(chunk) for chunk in indices.chunks[batch_dims:])
    if slices * chosen * x.dtype.itemsize <= 2 * limit or batch_dims == indices.ndim:
        return indices
    wanted = (*indices.chunks[:batch_dims], *["auto"] * (indices.ndim - batch_dims))
    own = limit // (slices * x.dtype.itemsize) * indices.dtype.itemsize
    return indices.rechunk(chunks_of(indices.shape, indices.dtype, own, wanted))


def _gather_part(
    x: Array, indices: Array, start: Array, *, axis: int, batch_dims: int, length: int
) -> Any:
    """Return what lies in this block, and nothing for the rest."""
    at = _positions(indices, length) - start[0]
    inside = (at >= 0) & (at < x.shape[axis])
    picked = _picked(x, np.where(inside, at, 0), axis, batch_dims)
    shape = (*at.shape[:batch_dims], *(1,) * (axis - batch_dims), *at.shape[batch_dims:],
             *(1,) * (x.ndim - axis - 1))  # fmt: skip
    return np.where(inside.reshape(shape), picked, _nothing(x.dtype))[..., None]


def _nothing(dtype: np.dtype[Any]) -> Array:
    """Return what changes no number to which it is added: -0.0, where there is one."""
    zero = np.zeros((), dtype)
    return np.asarray(np.negative(zero)) if dtype.kind in "fc" else zero


class _Overlay:
    """Takes the place of a ufunc: adds what came out of blocks, of which one has the element.

    NumPy's own sum begins with 0.0, and makes 0.0 of -0.0.
    """

    @staticmethod
    def reduce(rows: Array, *, axis: int, dtype: np.dtype[Any]) -> Any:
        return np.add.reduce(rows, axis=axis, dtype=dtype, initial=_nothing(dtype))


@native(kernels, specs.GATHER_V2, chunked=_gathered)
def gather(x: Array, indices: Array, *, axis: int, batch_dims: int) -> Any:
    return _picked(x, _positions(indices, x.shape[axis]), axis, batch_dims)


def _scattered(
    indices: da.Array, updates: da.Array, *, shape: Shape, out: TensorType, limit: int
) -> da.Array:
    """Add up, for each block of the result, what each block of the updates brings there."""
    depth = scatter_depth(indices.shape, updates.shape, shape)
    sizes = shape[:depth]
    rows, width = math.prod(sizes), math.prod(shape[depth:])
    count = updates.size // width
    table = da.reshape(indices, (count, depth), limit=limit).rechunk({1: -1})
    values = da.reshape(updates, (count, width), limit=limit)
    _, (table, values) = da.core.unify_chunks(table, "nd", values, "nw", warn=False)
    heights = chunks_of((rows, width), out.dtype.numpy, limit, ("auto", values.chunks[1]))[0]
    spans = np.stack([np.cumsum([0, *heights[:-1]]), heights], axis=1)
    parts = da.blockwise(
        WithoutWarnings(partial(_scatter_part, sizes=sizes, dtype=wider(out.dtype)), "scatter"),
        "rwn",
        da.from_array(spans, (1, 2), name=fresh("spans")),
        "rs",
        values,
        "nw",
        table,
        "nd",
        name=fresh("scatter"),
        adjust_chunks={"r": heights, "n": 1},
        align_arrays=False,
        concatenate=True,
        meta=meta(wider(out.dtype), 3),
    )
    return da.reshape(tree(np.add, parts, (2,), out.dtype, keep=False), shape, limit=limit)


def _scatter_part(span: Array, values: Array, table: Array, *, sizes: Shape, dtype: Any) -> Any:
    start, height = (int(item) for item in span[0])
    at = _flattened(table, sizes) - start
    inside = (at >= 0) & (at < height)
    return _summed(at[inside], values[inside], height, dtype)[..., None]


def _flattened(table: Array, sizes: Shape) -> Array:
    """Return the number of the row that each index, a row of the table, names."""
    flat = np.zeros(len(table), np.intp)
    for axis, length in enumerate(sizes):
        flat = flat * length + _positions(table[:, axis], length)
    return flat


def _summed(at: Array, values: Array, rows: int, dtype: Any) -> Array:
    """Add rows of values up; ``add.at`` counts those for the same row, ``+=`` would not."""
    result = np.zeros((rows, values.shape[1]), dtype)
    np.add.at(result, at, values)
    return result


@native(kernels, specs.SCATTER_ND, chunked=_scattered)
def scatter_nd(indices: Array, updates: Array, *, shape: Shape, out: TensorType) -> Any:
    depth = scatter_depth(indices.shape, updates.shape, shape)
    width = math.prod(shape[depth:])
    count = math.prod(updates.shape[: updates.ndim + depth - len(shape)])
    at = _flattened(indices.reshape(count, depth), shape[:depth])
    found = _summed(at, updates.reshape(count, width), math.prod(shape[:depth]), wider(out.dtype))
    return found.reshape(shape).astype(out.dtype.numpy)
