"""Convolution as one matrix product over the taps of its windows (im2col)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.ops import convolution as ops
from tensorplug.ops.linalg import matmul
from tensorplug.ops.movement import concat, permute_dims, reshape
from tensorplug.ops.movement import slice as slice_
from tensorplug.ops.patches import taps, untap
from tensorplug.tables import DecompositionTable

if TYPE_CHECKING:
    from tensorplug.shapes import Shape
    from tensorplug.tensor import Tensor
    from tensorplug.windows import Window

decompositions = DecompositionTable()

Attributes = dict[str, Any]


@decompositions.of(ops.CONV2D)
def conv2d(x: Tensor, filter: Tensor, *, attributes: Attributes) -> Tensor:
    windows = ops.windows_of(x.shape, filter.shape, attributes)
    image = _channels_last(x, attributes)
    rows = matmul(_columns(image, windows), _matrix(filter))
    shape = (image.shape[0], windows[0].out, windows[1].out, filter.shape[3])
    return _restored(reshape(rows, shape), attributes)


@decompositions.of(ops.CONV2D_BACKPROP_FILTER)
def backprop_filter(
    x: Tensor, dy: Tensor, *, attributes: Attributes, filter_shape: Shape
) -> Tensor:
    windows = ops.windows_of(x.shape, filter_shape, attributes)
    columns = _columns(_channels_last(x, attributes), windows)
    flat = reshape(_channels_last(dy, attributes), (columns.shape[0], filter_shape[3]))
    return reshape(matmul(columns, flat, transpose_a=True), filter_shape)


@decompositions.of(ops.CONV2D_BACKPROP_INPUT)
def backprop_input(
    dy: Tensor, filter: Tensor, *, attributes: Attributes, input_shape: Shape
) -> Tensor:
    windows = ops.windows_of(input_shape, filter.shape, attributes)
    last = _channels_last(dy, attributes)
    batch, height, width, channels = *last.shape[:3], filter.shape[2]
    flat = reshape(last, (batch * height * width, filter.shape[3]))
    columns = matmul(flat, _matrix(filter), transpose_b=True)
    parts = [
        reshape(
            slice_(columns, (0, at * channels), (-1, channels)),
            (batch, height, width, channels),
        )
        for at in range(filter.shape[0] * filter.shape[1])
    ]
    return _restored(untap(parts, windows), attributes)


def _columns(image: Tensor, windows: tuple[Window, Window]) -> Tensor:
    """Return [positions, taps * channels]: what each position of the window sees."""
    joined = concat(taps(image, windows, 0), axis=3)
    batch, height, width, depth = joined.shape
    return reshape(joined, (batch * height * width, depth))


def _matrix(filter: Tensor) -> Tensor:
    height, width, inner, outer = filter.shape
    return reshape(filter, (height * width * inner, outer))


def _channels_last(x: Tensor, attributes: Attributes) -> Tensor:
    return permute_dims(x, (0, 2, 3, 1)) if attributes["data_format"] == "NCHW" else x


def _restored(x: Tensor, attributes: Attributes) -> Tensor:
    return permute_dims(x, (0, 3, 1, 2)) if attributes["data_format"] == "NCHW" else x
