"""Depthwise convolution as one matrix product per channel over the taps of its windows."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.joining import concat
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.movement import expand_dims, permute_dims, reshape
from tensorplug.ops.nn.convolution import depthwise as ops
from tensorplug.ops.nn.convolution.correlation import windows_of
from tensorplug.ops.nn.convolution.patches import from_channels_last, taps, to_channels_last, untap

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.windows import Windows
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(alone=True)

Attributes = dict[str, Any]


@decompositions.of(ops.DEPTHWISE_CONV2D)
def depthwise_conv2d(
    x: Tensor, filter: Tensor, *, attributes: Attributes, data_format: str
) -> Tensor:
    windows = windows_of(x.shape, filter.shape, attributes)
    image = to_channels_last(x, data_format)
    rows = matmul(
        _stack_columns(image, windows), _flatten_filter(filter)
    )  # [channels, positions, multiplier]
    shape = (image.shape[0], *(window.out for window in windows), prod(filter.shape[2:]))
    return from_channels_last(reshape(permute_dims(rows, (1, 0, 2)), shape), data_format)


@decompositions.of(ops.DEPTHWISE_CONV2D_BACKPROP_FILTER)
def backprop_filter(
    x: Tensor, dy: Tensor, *, attributes: Attributes, data_format: str, filter_shape: Shape
) -> Tensor:
    windows = windows_of(x.shape, filter_shape, attributes)
    columns = _stack_columns(to_channels_last(x, data_format), windows)
    rows = _split_channels(to_channels_last(dy, data_format), *filter_shape[2:])
    product = matmul(columns, rows, transpose_a=True)  # [channels, taps, multiplier]
    return reshape(permute_dims(product, (1, 0, 2)), filter_shape)


@decompositions.of(ops.DEPTHWISE_CONV2D_BACKPROP_INPUT)
def backprop_input(
    dy: Tensor, filter: Tensor, *, attributes: Attributes, data_format: str, input_shape: Shape
) -> Tensor:
    windows = windows_of(input_shape, filter.shape, attributes)
    last = to_channels_last(dy, data_format)
    channels = filter.shape[2]
    columns = matmul(
        _split_channels(last, *filter.shape[2:]), _flatten_filter(filter), transpose_b=True
    )
    by_tap = permute_dims(columns, (2, 1, 0))  # [taps, positions, channels]
    parts = [
        reshape(slice_(by_tap, (at, 0, 0), (1, -1, -1)), (*last.shape[:-1], channels))
        for at in range(by_tap.shape[0])
    ]
    return from_channels_last(untap(parts, windows), data_format)


def _stack_columns(image: Tensor, windows: Windows) -> Tensor:
    """Return [channels, positions, taps]: what each position of the window sees."""
    joined = concat([expand_dims(tap, axis=-1) for tap in taps(image, windows, 0)], axis=-1)
    *positions, channels, count = joined.shape
    return permute_dims(reshape(joined, (prod(positions), channels, count)), (1, 0, 2))


def _flatten_filter(filter: Tensor) -> Tensor:
    """Return [channels, taps, multiplier]."""
    height, width, channels, multiplier = filter.shape
    return permute_dims(reshape(filter, (height * width, channels, multiplier)), (1, 0, 2))


def _split_channels(dy: Tensor, channels: int, multiplier: int) -> Tensor:
    """Return [channels, positions, multiplier]."""
    rows = reshape(dy, (prod(dy.shape[:-1]), channels, multiplier))
    return permute_dims(rows, (1, 0, 2))
