"""The largest entries of rows: of each block by itself, then of those that it found."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np

from tensorplug.plugin import KernelTable, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_dask.blocks import (
    WithoutWarnings,
    concrete,
    fresh,
    meta,
    one_block,
    pattern,
    starts_of,
)
from tensorplug_dask.lazy import Lazy

if TYPE_CHECKING:
    from tensorplug_dask.backend import DaskBackend

    Array = np.ndarray[Any, Any]

kernels = KernelTable()


@kernels.register(specs.TOP_K)
def top_k(
    x: Lazy, *, k: int, backend: DaskBackend, out: tuple[TensorType, TensorType]
) -> list[Lazy]:
    """Return values and indices; both orders of ``sorted`` are sorted."""
    if not out[0].size:
        return [Lazy(concrete(np.empty(item.shape, item.dtype.numpy))) for item in out]
    array = x.array
    if array.npartitions == 1:
        order = one_block(partial(_order, k=k), [array], out[1])
        found = [one_block(_taken, [array, order], out[0]), order]
    else:
        found = _chunked(array, k, out)
    return [backend.pending.result(item, [x]) for item in found]


def _order(x: Array, *, k: int) -> Any:
    """A stable sort of the reversed axis, read backwards, has the lowest index first."""
    length = x.shape[-1]
    order = length - 1 - np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    return order[..., :k].astype(np.int32)


def _taken(x: Array, order: Array) -> Array:
    return np.take_along_axis(x, order, axis=-1)


def _chunked(x: da.Array, k: int, out: tuple[TensorType, TensorType]) -> list[da.Array]:
    """Return the largest among the largest of each block, which are in the order of the blocks."""
    widths = x.chunks[-1]
    starts = starts_of(widths)
    axes, kept = pattern(x.ndim), tuple(min(k, width) for width in widths)
    order = _rowwise(partial(_order, k=k), [(x, axes)], out[1], kept)
    values = _rowwise(_taken, [(x, axes), (order, axes)], out[0], kept)
    places = _rowwise(np.add, [(order, axes), (starts, (0,))], out[1], kept)
    whole = [item.rechunk({x.ndim - 1: -1}) for item in (values, places)]
    best = _rowwise(partial(_order, k=k), [(whole[0], axes)], out[1], (k,))
    return [
        _rowwise(_taken, [(item, axes), (best, axes)], type_, (k,))
        for item, type_ in zip(whole, out, strict=True)
    ]


def _rowwise(
    function: Any, inputs: list[tuple[da.Array, Any]], out: TensorType, widths: tuple[int, ...]
) -> da.Array:
    """Return what a function makes of blocks whose last axis then has other sizes."""
    call = WithoutWarnings(partial(_cast, function, out.dtype))
    return da.blockwise(
        call,
        pattern(out.rank),
        *(item for pair in inputs for item in pair),
        name=fresh("largest"),
        adjust_chunks={0: widths},
        align_arrays=False,  # the blocks fit, whatever their sizes
        meta=meta(out.dtype.numpy, out.rank),
    )


def _cast(function: Any, dtype: dt.DType, *blocks: Array) -> Any:
    return function(*blocks).astype(dtype.numpy, copy=False)
