"""Reductions along axes."""

from __future__ import annotations

from functools import partial
from math import prod as prod_of
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import KernelSpec, TensorType, shapes, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.arrays import accumulating, working
from tensorplug_cpu.execution.floating_point import kernel, without_warnings
from tensorplug_cpu.jit.families import reductions
from tensorplug_cpu.jit.forms import by_form
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.summation import groups, middle, summer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Backend
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()

_add: np.ufunc = np.add  # the general type: NumPy's own is told apart by a literal keepdims
_multiply: np.ufunc = np.multiply

Axes = tuple[int, ...]


@kernels.prepare(specs.SUM)
@by_form(specs.SUM, dt.STORED - dt.INEXACT)
def sum(x: TensorType, *, axis: Axes, keep_dims: bool, out: TensorType) -> Call:
    """Add: inexact numbers as ``summation`` does, integers with wrapping, booleans in int32."""
    narrow = out.dtype.numpy
    if out.dtype not in dt.INEXACT:
        return kernel(partial(_add.reduce, axis=axis, keepdims=keep_dims, dtype=narrow), out)
    work = working(out.dtype)
    if work is narrow:
        add = summer(x.shape, axis, work, keep_dims=keep_dims)
        return without_warnings(add)
    total = _sum_of_halves(x, axis, work, keep_dims=keep_dims)
    return without_warnings(lambda x: total(x).astype(narrow))


@kernels.prepare(specs.MEAN, because="faster")
def mean(x: TensorType, *, axis: Axes, keep_dims: bool, out: TensorType) -> Call:
    """Add and divide by the number of terms; without terms that is 0/0, NaN."""
    narrow, work = out.dtype.numpy, working(out.dtype)
    if work is narrow:
        add = summer(x.shape, axis, work, keep_dims=keep_dims)
    else:
        add = _sum_of_halves(x, axis, work, keep_dims=keep_dims)
    count = np.array(prod_of(x.shape[number] for number in axis), work)

    def run(x: Array) -> Array:
        return np.asarray(np.true_divide(add(x), count)).astype(narrow, copy=False)

    return without_warnings(run)


def _sum_of_halves(
    x: TensorType, axis: Axes, work: np.dtype[Any], *, keep_dims: bool
) -> Callable[[Array], Array]:
    """Return the function that sums a narrow float, with results of the dtype ``work``."""
    native = reductions.folder(groups(x.shape, axis), x.dtype.numpy, work, middle)
    if native is None:
        add = summer(x.shape, axis, work, keep_dims=keep_dims)
        return lambda x: add(x.astype(work))
    shape = shapes.reduce(x.shape, axis, keep_dims=keep_dims)
    return lambda x: native(x).reshape(shape)


@kernels.prepare(specs.PROD)
@by_form(specs.PROD)
def prod(x: TensorType, *, axis: Axes, keep_dims: bool, out: TensorType) -> Call:
    """Multiply: inexact numbers in the next wider dtype, rounded once; integers wrap."""
    narrow = out.dtype.numpy
    work = accumulating(out.dtype)

    def run(x: Array) -> Any:
        wide = _multiply.reduce(x, axis=axis, keepdims=keep_dims, dtype=work)
        return wide.astype(narrow, copy=False)

    return kernel(run, out)


def _extreme(function: np.ufunc, axis: Axes, out: TensorType, *, keep_dims: bool) -> Call:
    if not out.size:  # NumPy refuses an empty axis even if the result is empty
        shape, dtype = out.shape, out.dtype.numpy
        return lambda _x: np.empty(shape, dtype)
    return kernel(partial(function.reduce, axis=axis, keepdims=keep_dims), out)


@kernels.prepare(specs.MAX)
@by_form(specs.MAX)
def max(_x: TensorType, *, reduction_indices: Axes, keep_dims: bool, out: TensorType) -> Call:
    """Take the largest; NaN if there is one."""
    return _extreme(np.maximum, reduction_indices, out, keep_dims=keep_dims)


@kernels.prepare(specs.MIN, because="faster")
@by_form(specs.MIN)
def min(_x: TensorType, *, axis: Axes, keep_dims: bool, out: TensorType) -> Call:
    """Take the smallest; NaN if there is one."""
    return _extreme(np.minimum, axis, out, keep_dims=keep_dims)


def _register_logical(spec: KernelSpec, function: np.ufunc) -> None:
    def by_numpy(_x: TensorType, *, axis: Axes, keep_dims: bool, out: TensorType) -> Call:
        return kernel(partial(function.reduce, axis=axis, keepdims=keep_dims), out)

    looped = by_form(spec)(by_numpy)

    @kernels.prepare(spec, because="faster")
    def prepare(
        x: TensorType, *, attributes: dict[str, Any], backend: Backend, out: TensorType
    ) -> Call:
        if out.size == 1:  # NumPy stops at the first element that decides
            return by_numpy(x, **attributes, out=out)
        return looped(x, attributes=attributes, backend=backend, out=out)  # type: ignore[call-arg]


_register_logical(specs.ANY, np.logical_or)
_register_logical(specs.ALL, np.logical_and)


def _register_index(spec: KernelSpec, find: Callable[..., Any]) -> None:
    @kernels.prepare(spec, because="faster")
    @by_form(spec)
    def prepare(_x: TensorType, *, axis: int, out: TensorType) -> Call:
        if not out.size:
            shape = out.shape
            return lambda _x: np.empty(shape, np.int32)
        return without_warnings(lambda x: np.asarray(find(x, axis=axis).astype(np.int32)))


_register_index(specs.ARG_MAX, np.argmax)  # the first of equals; a NaN counts as largest
_register_index(specs.ARG_MIN, np.argmin)  # and as smallest
