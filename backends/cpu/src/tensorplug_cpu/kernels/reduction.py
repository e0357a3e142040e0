"""Reductions along axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug import dtypes as dt
from tensorplug.ops import reduction as ops
from tensorplug.tables import KernelTable
from tensorplug_cpu.quiet import kernel

if TYPE_CHECKING:
    from tensorplug.spec import KernelSpec, TensorType
    from tensorplug_cpu.arrays import Array, Call

kernels = KernelTable()

Axes = tuple[int, ...]
_WIDER = {
    dt.float16: np.dtype(np.float32),
    dt.float32: np.dtype(np.float64),
    dt.complex64: np.dtype(np.complex128),
}


def _reducer(function: np.ufunc, axis: Axes, keep_dims: bool, out: TensorType) -> Call:
    work = _WIDER.get(out.dtype, out.dtype.numpy)
    narrow = out.dtype.numpy

    def run(x: Array) -> Any:
        wide = function.reduce(x, axis=axis, keepdims=keep_dims, dtype=work)
        return wide.astype(narrow, copy=False)

    return kernel(run, out)


@kernels.prepare(ops.SUM)
def sum(x: TensorType, *, axis: Axes, keep_dims: bool, out: TensorType) -> Call:
    """Add."""
    return _reducer(np.add, axis, keep_dims, out)


@kernels.prepare(ops.PROD)
def prod(x: TensorType, *, axis: Axes, keep_dims: bool, out: TensorType) -> Call:
    """Multiply, in the next wider dtype."""
    return _reducer(np.multiply, axis, keep_dims, out)


@kernels.prepare(ops.MEAN)
def mean(x: TensorType, *, axis: Axes, keep_dims: bool, out: TensorType) -> Call:
    """Add and divide by the number of terms; without terms that is 0/0, NaN."""
    work = _WIDER.get(out.dtype, out.dtype.numpy)
    narrow = out.dtype.numpy
    count = 1
    for each in axis:
        count *= x.shape[each]

    def run(x: Array) -> Any:
        wide = np.add.reduce(x, axis=axis, keepdims=keep_dims, dtype=work)
        return np.true_divide(wide, count).astype(narrow, copy=False)

    return kernel(run, out)


def _extreme(function: np.ufunc, axis: Axes, keep_dims: bool, out: TensorType) -> Call:
    if not out.size:  # NumPy refuses an empty axis even where there is no result to give
        shape, dtype = out.shape, out.dtype.numpy
        return lambda _x: np.empty(shape, dtype)
    return kernel(lambda x: function.reduce(x, axis=axis, keepdims=keep_dims), out)


@kernels.prepare(ops.MAX)
def max(
    x: TensorType, *, reduction_indices: Axes, keep_dims: bool, out: TensorType
) -> Call:
    """Take the largest; NaN if there is one."""
    return _extreme(np.maximum, reduction_indices, keep_dims, out)


@kernels.prepare(ops.MIN)
def min(x: TensorType, *, axis: Axes, keep_dims: bool, out: TensorType) -> Call:
    """Take the smallest; NaN if there is one."""
    return _extreme(np.minimum, axis, keep_dims, out)


def _register_logical(spec: KernelSpec, function: np.ufunc) -> None:
    @kernels.prepare(spec)
    def prepare(x: TensorType, *, axis: Axes, keep_dims: bool, out: TensorType) -> Call:
        return kernel(lambda x: function.reduce(x, axis=axis, keepdims=keep_dims), out)


_register_logical(ops.ANY, np.logical_or)
_register_logical(ops.ALL, np.logical_and)


@kernels.prepare(ops.ARG_MAX)
def arg_max(x: TensorType, *, axis: int, out: TensorType) -> Call:
    """Find the first largest; NumPy counts a NaN as largest too."""
    if not out.size:
        shape = out.shape
        return lambda _x: np.empty(shape, np.int32)
    return kernel(lambda x: np.argmax(x, axis=axis).astype(np.int32), out)
