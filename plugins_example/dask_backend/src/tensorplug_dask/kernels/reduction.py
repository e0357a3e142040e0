"""Reductions along axes: each block by itself, then the results of the blocks as a tree."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import dask.array as da
import numpy as np

from tensorplug.plugin import DType, KernelSpec, KernelTable, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_dask.blocks import WithoutWarnings, elementwise, meta
from tensorplug_dask.native import native

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]
    Axes = tuple[int, ...]

kernels = KernelTable()


class Fold(Protocol):
    """What reduces the last axis: a ufunc, or another with such a method."""

    def reduce(self, rows: Any, /, *, axis: int, dtype: Any) -> Any:
        """Return the reduction, computed in ``dtype``."""


# Where sums and products are kept until the end: there, rounding of the steps does not show.
WIDER: Final[dict[DType, np.dtype[Any]]] = {
    dt.float32: np.dtype(np.float64),
    dt.complex64: np.dtype(np.complex128),
}


def wider(dtype: DType) -> np.dtype[Any]:
    """Return the dtype in which sums for a result of ``dtype`` are kept."""
    return WIDER.get(dtype, dtype.compute.numpy)


def folded(function: Fold, x: Array, axis: Axes, dtype: Any) -> Array:
    """Return the reduction along axes, which it keeps with size 1.

    The axes become the last one, dense: only along such does NumPy add pairwise.
    """
    kept = [index for index in range(x.ndim) if index not in axis]
    shape = (*(x.shape[item] for item in kept), math.prod(x.shape[item] for item in axis))
    rows = np.ascontiguousarray(x.transpose(*kept, *axis)).reshape(shape)
    result = np.asarray(function.reduce(rows, axis=-1, dtype=dtype))
    return result.reshape([1 if item in axis else size for item, size in enumerate(x.shape)])


def tree(
    function: Fold, x: da.Array, axis: Axes, dtype: DType, *, keep: bool, work: Any = None
) -> da.Array:
    """Return the reduction of an array of several blocks; steps are of ``work``, or wider."""
    if not axis:
        return x.astype(dtype.numpy)
    work = wider(dtype) if work is None else work
    step = WithoutWarnings(partial(_step, function, work))
    end = WithoutWarnings(partial(_end, function, work, dtype.numpy))
    return da.reduction(
        x,
        step,
        end,
        axis=axis,
        keepdims=keep,
        combine=step,
        dtype=dtype.numpy,
        meta=meta(dtype.numpy, x.ndim if keep else x.ndim - len(axis)),
    )


def _step(function: Fold, work: Any, x: Array, *, axis: Axes, keepdims: bool) -> Array:
    found = folded(function, x, axis, work)
    return found if keepdims else found.squeeze(axis)


def _end(function: Fold, work: Any, dtype: Any, x: Array, *, axis: Axes, keepdims: bool) -> Array:
    return _step(function, work, x, axis=axis, keepdims=keepdims).astype(dtype)


def _register(spec: KernelSpec, function: np.ufunc) -> None:
    def chunked(x: da.Array, *, axis: Axes, keep_dims: bool, out: TensorType) -> da.Array:
        return tree(function, x, axis, out.dtype, keep=keep_dims)

    @native(kernels, spec, chunked=chunked)
    def whole(x: Array, *, axis: Axes, out: TensorType) -> Any:
        found = folded(function, x, axis, wider(out.dtype))
        return found.astype(out.dtype.numpy).reshape(out.shape)


_register(specs.SUM, np.add)
_register(specs.PROD, np.multiply)


def _largest(
    x: da.Array, *, reduction_indices: Axes, keep_dims: bool, out: TensorType
) -> da.Array:
    return tree(np.maximum, x, reduction_indices, out.dtype, keep=keep_dims, work=x.dtype)


@native(kernels, specs.MAX, chunked=_largest)
def max_(x: Array, *, reduction_indices: Axes, out: TensorType) -> Any:
    return folded(np.maximum, x, reduction_indices, x.dtype).reshape(out.shape)


def _place(x: da.Array, *, axis: int, out: TensorType, limit: int) -> da.Array:
    return elementwise(_narrow, [da.argmax(x, axis=axis)], out, limit)


def _narrow(x: Array) -> Any:
    return x.astype(np.int32)


@native(kernels, specs.ARG_MAX, chunked=_place)
def arg_max(x: Array, *, axis: int) -> Any:
    """The first among equals; NaN counts as largest, here and in NumPy."""
    return np.argmax(x, axis=axis).astype(np.int32)
