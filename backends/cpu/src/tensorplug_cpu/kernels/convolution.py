"""Convolution in two dimensions: what ``correlation`` computes, in either data format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.ops import convolution as ops
from tensorplug.tables import KernelTable
from tensorplug_cpu.arrays import working
from tensorplug_cpu.correlation import correlate, correlate_filter, spread
from tensorplug_cpu.quiet import quietly

if TYPE_CHECKING:
    from tensorplug.shapes import Shape
    from tensorplug.spec import TensorType
    from tensorplug_cpu.arrays import Array, Call

kernels = KernelTable()

Attributes = dict[str, Any]

Pair = tuple[int, int]

_TO_NHWC = (0, 2, 3, 1)
_TO_NCHW = (0, 3, 1, 2)


@kernels.prepare(ops.CONV2D)
def conv2d(
    x: TensorType,
    filter: TensorType,
    *,
    attributes: Attributes,
    data_format: str,
    out: TensorType,
) -> Call:
    """Convolve; float16 in float32, rounded once."""
    at = ops.windows_of(x.shape, filter.shape, attributes)
    work, narrow, swap = working(out.dtype), out.dtype.numpy, data_format == "NCHW"

    def run(x: Array, filter: Array) -> Array:
        images = x.transpose(_TO_NHWC) if swap else x
        wide = correlate(images.astype(work, copy=False), filter.astype(work, copy=False), at)
        return (wide.transpose(_TO_NCHW) if swap else wide).astype(narrow, copy=False)

    return quietly(run)


@kernels.prepare(ops.CONV2D_BACKPROP_INPUT)
def conv2d_backprop_input(
    dy: TensorType,
    filter: TensorType,
    *,
    attributes: Attributes,
    data_format: str,
    input_shape: Shape,
    out: TensorType,
) -> Call:
    """Give every element what the windows over it pass on."""
    at = ops.windows_of(input_shape, filter.shape, attributes)
    work, narrow, swap = working(out.dtype), out.dtype.numpy, data_format == "NCHW"

    def run(dy: Array, filter: Array) -> Array:
        images = dy.transpose(_TO_NHWC) if swap else dy
        wide = spread(images.astype(work, copy=False), filter.astype(work, copy=False), at)
        return (wide.transpose(_TO_NCHW) if swap else wide).astype(narrow, copy=False)

    return quietly(run)


@kernels.prepare(ops.CONV2D_BACKPROP_FILTER)
def conv2d_backprop_filter(
    x: TensorType,
    dy: TensorType,
    *,
    attributes: Attributes,
    data_format: str,
    filter_shape: Shape,
    out: TensorType,
) -> Call:
    """Correlate the elements that each tap read with what came out."""
    at = ops.windows_of(x.shape, filter_shape, attributes)
    work, narrow, swap = working(out.dtype), out.dtype.numpy, data_format == "NCHW"

    def run(x: Array, dy: Array) -> Array:
        images = x.transpose(_TO_NHWC) if swap else x
        upstream = dy.transpose(_TO_NHWC) if swap else dy
        wide = correlate_filter(
            images.astype(work, copy=False), upstream.astype(work, copy=False), at
        )
        return wide.astype(narrow, copy=False)

    return quietly(run)
