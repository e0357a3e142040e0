"""Parts of an array: views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract.tables import KernelTable
from tensorplug.ops.indexing import slicing as ops
from tensorplug_cpu.quiet import quietly

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import TensorType
    from tensorplug_cpu.arrays import Array, Call

kernels = KernelTable()


@kernels.prepare(ops.UNPACK)
def unpack(value: TensorType, *, axis: int) -> Call:
    """View of each place along the axis."""
    lead = (slice(None),) * axis
    keys: list[Any] = [(*lead, place, ...) for place in range(value.shape[axis])]
    return lambda x: [x[key] for key in keys]


@kernels.prepare(ops.SPLIT_V)
def split(x: TensorType, *, num_or_size_splits: tuple[int, ...], axis: int) -> Call:
    """View of each part."""
    lead = (slice(None),) * axis
    keys: list[Any] = []
    at = 0
    for size in num_or_size_splits:
        keys.append((*lead, slice(at, at + size)))
        at += size
    return lambda x: [x[key] for key in keys]


@kernels.prepare(ops.STRIDED_SLICE)
def strided_slice(x: TensorType, *, attributes: dict[str, Any]) -> Call:
    """View with other strides; axes come and go without a copy."""
    taken = ops.selection(x.shape, attributes)
    key: Any = (..., *taken.slices())
    if taken.shape == taken.counts:
        return lambda x: x[key]
    shape = taken.shape
    return lambda x: x[key].reshape(shape)


@kernels.prepare(ops.STRIDED_SLICE_GRAD)
def strided_slice_grad(dy: TensorType, *, shape: Shape, attributes: dict[str, Any]) -> Call:
    """Write into zeros."""
    taken = ops.selection(shape, attributes)
    key: Any = (..., *taken.slices())
    dtype, counts = dy.dtype.numpy, taken.counts

    def run(dy: Array) -> Array:
        result = np.zeros(shape, dtype)
        result[key] = dy.reshape(counts)
        return result

    return quietly(run)
