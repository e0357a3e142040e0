"""Dilation over the taps of its windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.joining import concat
from tensorplug.ops.movement import expand_dims, reshape
from tensorplug.ops.nn.convolution import morphology as ops
from tensorplug.ops.nn.convolution.patches import find_largest_sums, untap
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(alone=True)

Attributes = dict[str, Any]


@decompositions.of(ops.DILATION2D)
def dilation2d(x: Tensor, filter: Tensor, *, attributes: Attributes) -> Tensor:
    return find_largest_sums(x, filter, ops.windows_of(x.shape, filter.shape, attributes))[0]


@decompositions.of(ops.DILATION2D_BACKPROP_INPUT)
def backprop_input(x: Tensor, filter: Tensor, dy: Tensor, *, attributes: Attributes) -> Tensor:
    windows = ops.windows_of(x.shape, filter.shape, attributes)
    chosen = find_largest_sums(x, filter, windows)[1]
    return untap([where(taken, dy, 0.0) for taken in chosen], windows)


@decompositions.of(ops.DILATION2D_BACKPROP_FILTER)
def backprop_filter(x: Tensor, filter: Tensor, dy: Tensor, *, attributes: Attributes) -> Tensor:
    windows = ops.windows_of(x.shape, filter.shape, attributes)
    chosen = find_largest_sums(x, filter, windows)[1]
    parts = [expand_dims(sum_(where(taken, dy, 0.0), axis=(0, 1, 2)), axis=0) for taken in chosen]
    return reshape(concat(parts, axis=0), filter.shape)
