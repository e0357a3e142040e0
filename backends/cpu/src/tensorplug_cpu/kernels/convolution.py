"""Convolution as matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.ops import convolution as ops
from tensorplug.tables import KernelTable
from tensorplug_cpu.arrays import working
from tensorplug_cpu.quiet import quietly
from tensorplug_cpu.sliding import Windows, padded, taps, unpadded

if TYPE_CHECKING:
    from tensorplug.shapes import Shape
    from tensorplug.spec import TensorType
    from tensorplug.windows import Padding
    from tensorplug_cpu.arrays import Array, Call

kernels = KernelTable()

Pair = tuple[int, int]


def _nhwc(x: Array, data_format: str) -> Array:
    return x if data_format == "NHWC" else x.transpose(0, 2, 3, 1)


def _back(x: Array, data_format: str) -> Array:
    return x if data_format == "NHWC" else x.transpose(0, 3, 1, 2)


@kernels.prepare(ops.CONV2D)
def conv2d(
    x: TensorType,
    filter: TensorType,
    *,
    strides: Pair,
    pad: Padding,
    data_format: str,
    dilations: Pair,
    dim_rounding_mode: str | None,
    out: TensorType,
) -> Call:
    """Convolve."""
    at = ops.geometry(
        x.shape,
        filter.shape,
        strides=strides,
        pad=pad,
        data_format=data_format,
        dilations=dilations,
        dim_rounding_mode=dim_rounding_mode,
    )
    blocks = list(taps(at))
    work = working(out.dtype)
    channels, filters = filter.shape[2:]

    def run(x: Array, filter: Array) -> Any:
        wide = padded(_nhwc(x, data_format).astype(work, copy=False), at, 0)
        weights = filter.astype(work, copy=False).reshape(len(blocks), channels, filters)
        shape = (wide.shape[0], at[0].out, at[1].out, filters)
        total = np.zeros(shape, work)
        for block, weight in zip(blocks, weights, strict=True):
            total += wide[block] @ weight
        return _back(total, data_format).astype(x.dtype, copy=False)

    return quietly(run)


@kernels.prepare(ops.CONV2D_BACKPROP_INPUT)
def conv2d_backprop_input(
    dy: TensorType,
    filter: TensorType,
    *,
    strides: Pair,
    pad: Padding,
    data_format: str,
    dilations: Pair,
    dim_rounding_mode: str | None,
    input_shape: Shape,
    out: TensorType,
) -> Call:
    """Spread dy over the taps it came from."""
    at = ops.geometry(
        input_shape,
        filter.shape,
        strides=strides,
        pad=pad,
        data_format=data_format,
        dilations=dilations,
        dim_rounding_mode=dim_rounding_mode,
    )
    blocks = list(taps(at))
    work = working(out.dtype)
    channels, filters = filter.shape[2:]
    rows, columns = (each.before + each.size + each.after for each in at)

    def run(dy: Array, filter: Array) -> Any:
        wide = _nhwc(dy, data_format).astype(work, copy=False)
        weights = filter.astype(work, copy=False).reshape(len(blocks), channels, filters)
        total = np.zeros((wide.shape[0], rows, columns, channels), work)
        for block, weight in zip(blocks, weights, strict=True):
            total[block] += wide @ weight.T
        return _back(unpadded(total, at), data_format).astype(dy.dtype, copy=False)

    return quietly(run)


@kernels.prepare(ops.CONV2D_BACKPROP_FILTER)
def conv2d_backprop_filter(
    x: TensorType,
    dy: TensorType,
    *,
    strides: Pair,
    pad: Padding,
    data_format: str,
    dilations: Pair,
    dim_rounding_mode: str | None,
    filter_shape: Shape,
    out: TensorType,
) -> Call:
    """Correlate x with dy, tap by tap."""
    at: Windows = ops.geometry(
        x.shape,
        filter_shape,
        strides=strides,
        pad=pad,
        data_format=data_format,
        dilations=dilations,
        dim_rounding_mode=dim_rounding_mode,
    )
    blocks = list(taps(at))
    work = working(out.dtype)
    channels, filters = filter_shape[2:]

    def run(x: Array, dy: Array) -> Any:
        wide = padded(_nhwc(x, data_format).astype(work, copy=False), at, 0)
        right = _nhwc(dy, data_format).astype(work, copy=False).reshape(-1, filters)
        result = np.empty((len(blocks), channels, filters), work)
        for tap, block in enumerate(blocks):
            np.matmul(wide[block].reshape(-1, channels).T, right, out=result[tap])
        return result.reshape(filter_shape).astype(dy.dtype, copy=False)

    return quietly(run)
