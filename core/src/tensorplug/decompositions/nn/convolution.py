"""Convolution as one matrix product over the taps of its windows (im2col), in 2-D and 3-D."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.joining import concat
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.movement import reshape
from tensorplug.ops.nn.convolution import convolution, volumes
from tensorplug.ops.nn.convolution.correlation import windows_of
from tensorplug.ops.nn.convolution.patches import from_channels_last, taps, to_channels_last, untap

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.windows import Windows
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.ops.nn.convolution.correlation import Family

decompositions: DecompositionTable = DecompositionTable(alone=True)

Attributes = dict[str, Any]


def _register_family(family: Family) -> None:
    """Register the decompositions of the kernels of ``family``."""

    @decompositions.of(family.forward)
    def forward(x: Tensor, filter: Tensor, *, attributes: Attributes, data_format: str) -> Tensor:
        windows = windows_of(x.shape, filter.shape, attributes)
        image = to_channels_last(x, data_format)
        rows = matmul(_stack_columns(image, windows), _flatten_filter(filter))
        shape = (image.shape[0], *(window.out for window in windows), filter.shape[-1])
        return from_channels_last(reshape(rows, shape), data_format)

    @decompositions.of(family.backprop_filter)
    def backprop_filter(
        x: Tensor, dy: Tensor, *, attributes: Attributes, data_format: str, filter_shape: Shape
    ) -> Tensor:
        windows = windows_of(x.shape, filter_shape, attributes)
        columns = _stack_columns(to_channels_last(x, data_format), windows)
        flat = reshape(to_channels_last(dy, data_format), (columns.shape[0], filter_shape[-1]))
        return reshape(matmul(columns, flat, transpose_a=True), filter_shape)

    @decompositions.of(family.backprop_input)
    def backprop_input(
        dy: Tensor, filter: Tensor, *, attributes: Attributes, data_format: str, input_shape: Shape
    ) -> Tensor:
        windows = windows_of(input_shape, filter.shape, attributes)
        last = to_channels_last(dy, data_format)
        positions, (inner, outer) = last.shape[:-1], filter.shape[-2:]
        flat = reshape(last, (prod(positions), outer))
        columns = matmul(flat, _flatten_filter(filter), transpose_b=True)
        parts = [
            reshape(slice_(columns, (0, at * inner), (-1, inner)), (*positions, inner))
            for at in range(prod(filter.shape[:-2]))
        ]
        return from_channels_last(untap(parts, windows), data_format)


for _each in (convolution.FAMILY, volumes.FAMILY):
    _register_family(_each)


def _stack_columns(image: Tensor, windows: Windows) -> Tensor:
    """Return [positions, taps * channels]: what each position of the window sees."""
    joined = concat(taps(image, windows, 0), axis=-1)
    return reshape(joined, (prod(joined.shape[:-1]), joined.shape[-1]))


def _flatten_filter(filter: Tensor) -> Tensor:
    return reshape(filter, (prod(filter.shape[:-1]), filter.shape[-1]))
