"""Reductions along axes: a fold per kernel and kind of dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import DType, KernelSpec, KernelTable, TensorType, specs
from tensorplug_opencl.codegen import calls
from tensorplug_opencl.codegen.folds import (
    all_fold,
    any_fold,
    max_fold,
    min_fold,
    product_fold,
    sum_fold,
)
from tensorplug_opencl.ordering import ranking
from tensorplug_opencl.reductions import rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.codegen.folds import Fold
    from tensorplug_opencl.opened import OpenedDevice

kernels = KernelTable()


def _prepare(
    spec: KernelSpec,
    fold: Callable[[DType], Fold],
    x: TensorType,
    axes: tuple[int, ...],
    backend: OpenedDevice,
    out: TensorType,
    last: str = "acc",
) -> Call:
    if not out.size:
        return calls.make_empty(backend.runtime, out)
    walk = rows.make_walk(x.shape, axes)
    return rows.make_reducer(
        backend.runtime, spec.name, walk, x.dtype, out, fold(out.dtype), last=last
    )


def _register(spec: KernelSpec, fold: Callable[[DType], Fold]) -> None:
    def prepare(
        x: TensorType, *, axis: tuple[int, ...], backend: OpenedDevice, out: TensorType
    ) -> Call:
        return _prepare(spec, fold, x, axis, backend, out)

    kernels.prepare(spec)(prepare)


for _spec, _fold in {
    specs.SUM: sum_fold,
    specs.PROD: product_fold,
    specs.MIN: min_fold,
    specs.ANY: any_fold,
    specs.ALL: all_fold,
}.items():
    _register(_spec, _fold)


@kernels.prepare(specs.MAX)
def max_(
    x: TensorType,
    *,
    reduction_indices: tuple[int, ...],
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Return the largest element; only this kernel has that attribute name."""
    return _prepare(specs.MAX, max_fold, x, reduction_indices, backend, out)


@kernels.prepare(specs.MEAN)
def mean(x: TensorType, *, axis: tuple[int, ...], backend: OpenedDevice, out: TensorType) -> Call:
    """Return the sum, divided once by the number of elements."""
    return _prepare(specs.MEAN, sum_fold, x, axis, backend, out, "acc / count")


@kernels.prepare(specs.ARG_MAX)
def arg_max(x: TensorType, *, axis: int, backend: OpenedDevice, out: TensorType) -> Call:
    """Return the index of the first largest element."""
    return _rank(ranking.arg_max, x, axis, backend, out)


@kernels.prepare(specs.ARG_MIN)
def arg_min(x: TensorType, *, axis: int, backend: OpenedDevice, out: TensorType) -> Call:
    """Return the index of the first smallest element."""
    return _rank(ranking.arg_min, x, axis, backend, out)


def _rank(
    find: Callable[..., Call], x: TensorType, axis: int, backend: OpenedDevice, out: TensorType
) -> Call:
    if not out.size:
        return calls.make_empty(backend.runtime, out)
    return find(backend.runtime, rows.make_walk(x.shape, (axis,)), x.dtype, out)
