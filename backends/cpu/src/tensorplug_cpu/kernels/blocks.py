"""Moving blocks: one copy by strides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.algorithms import (
    cells_first_permutation,
    plan_depth_rearrangement,
    split_spatial_axes,
)
from tensorplug.plugin import Shape, TensorType, specs
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


@kernels.prepare(specs.BATCH_TO_SPACE_ND, because="faster")
def batch_to_space_nd(
    x: TensorType,
    *,
    block_shape: tuple[int, ...],
    crops: tuple[tuple[int, int], ...],
    out: TensorType,
) -> Call:
    """Move the elements of each block together; the crop is a view."""
    ahead = (*block_shape, out.shape[0], *x.shape[1:])
    order = cells_first_permutation(x.rank, len(block_shape))
    back = [order.index(axis) for axis in range(len(order))]
    sizes = [size + sum(crop) for size, crop in zip(out.shape[1:], crops, strict=False)]
    whole = (out.shape[0], *sizes, *out.shape[1 + len(sizes) :])
    kept = zip(crops, out.shape[1:], strict=False)
    key: Any = (slice(None), *(slice(before, before + size) for (before, _), size in kept))
    return without_warnings(lambda x: x.reshape(ahead).transpose(back).reshape(whole)[key])


@kernels.prepare(specs.SPACE_TO_BATCH_ND, because="faster")
def space_to_batch_nd(
    x: TensorType,
    *,
    block_shape: tuple[int, ...],
    paddings: tuple[tuple[int, int], ...],
    out: TensorType,
) -> Call:
    """Write the elements into zeros, then move the cells apart."""
    sizes = [size + sum(pair) for size, pair in zip(x.shape[1:], paddings, strict=False)]
    whole = (x.shape[0], *sizes, *x.shape[1 + len(sizes) :])
    inside = zip(paddings, x.shape[1:], strict=False)
    key: Any = (slice(None), *(slice(before, before + size) for (before, _), size in inside))
    cells = split_spatial_axes(whole, block_shape)
    order = cells_first_permutation(x.rank, len(block_shape))
    shape, dtype, plain = out.shape, out.dtype.numpy, whole == x.shape

    def run(x: Array) -> Array:
        padded = x
        if not plain:
            padded = np.zeros(whole, dtype)
            padded[key] = x
        return padded.reshape(cells).transpose(order).reshape(shape)

    return without_warnings(run)


@kernels.prepare(specs.DEPTH_TO_SPACE, because="faster")
def depth_to_space(x: TensorType, *, block_size: int, data_format: str, out: TensorType) -> Call:
    """Move the cells of a block beside rows and columns."""
    return _rearranged(
        *plan_depth_rearrangement(x, block_size, data_format, into_depth=False), out
    )


@kernels.prepare(specs.SPACE_TO_DEPTH, because="faster")
def space_to_depth(x: TensorType, *, block_size: int, data_format: str, out: TensorType) -> Call:
    """Move the cells of a block before the channels."""
    return _rearranged(*plan_depth_rearrangement(x, block_size, data_format, into_depth=True), out)


def _rearranged(apart: Shape, order: tuple[int, ...], out: TensorType) -> Call:
    shape = out.shape
    return without_warnings(lambda x: x.reshape(apart).transpose(order).reshape(shape))
