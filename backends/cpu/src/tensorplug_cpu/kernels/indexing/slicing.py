"""Parts of an array: views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.algorithms import selection
from tensorplug.plugin import Shape, TensorType, specs
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


@kernels.prepare(specs.UNPACK, because="faster")
def unpack(value: TensorType, *, axis: int) -> Call:
    """View of each position along the axis."""
    lead = (slice(None),) * axis
    keys: list[Any] = [(*lead, position, ...) for position in range(value.shape[axis])]
    return lambda x: [x[key] for key in keys]


@kernels.prepare(specs.SPLIT_V, because="faster")
def split(x: TensorType, *, num_or_size_splits: tuple[int, ...], axis: int) -> Call:
    """View of each part."""
    lead = (slice(None),) * axis
    keys: list[Any] = []
    at = 0
    for size in num_or_size_splits:
        keys.append((*lead, slice(at, at + size)))
        at += size
    return lambda x: [x[key] for key in keys]


@kernels.prepare(specs.STRIDED_SLICE, because="faster")
def strided_slice(x: TensorType, *, attributes: dict[str, Any]) -> Call:
    """View with other strides, and with axes added or removed."""
    taken = selection(x.shape, attributes)
    key: Any = (..., *taken.slices())
    if taken.shape == taken.counts:
        return lambda x: x[key]
    shape = taken.shape
    return lambda x: x[key].reshape(shape)


@kernels.prepare(specs.STRIDED_SLICE_GRAD, because="faster")
def strided_slice_grad(dy: TensorType, *, shape: Shape, attributes: dict[str, Any]) -> Call:
    """Write into zeros."""
    taken = selection(shape, attributes)
    key: Any = (..., *taken.slices())
    dtype, counts = dy.dtype.numpy, taken.counts

    def run(dy: Array) -> Array:
        result = np.zeros(shape, dtype)
        result[key] = dy.reshape(counts)
        return result

    return without_warnings(run)
