"""Pooling over the taps of its windows."""

from __future__ import annotations

from functools import reduce
from math import prod
from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.creation import full
from tensorplug.ops.elementwise.arithmetic import maximum
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.movement import broadcast_to, reshape
from tensorplug.ops.nn.convolution import argmax_pooling
from tensorplug.ops.nn.convolution import pooling as ops
from tensorplug.ops.nn.convolution.averaging import divide_by_counts, sum_pairwise
from tensorplug.ops.nn.convolution.dilated_pooling import POOL, pool_geometry
from tensorplug.ops.nn.convolution.patches import (
    find_first_matches,
    from_channels_last,
    places,
    taps,
    to_channels_last,
    untap,
)
from tensorplug.ops.order import lowest
from tensorplug.ops.ranges import arange

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.contract.windows import Windows
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(alone=True)


def _take_largest(x: Tensor, windows: Windows) -> Tensor:
    return reduce(maximum, taps(x, windows, lowest(x.dtype)))


def _take_average(x: Tensor, windows: Windows) -> Tensor:
    return divide_by_counts(sum_pairwise(taps(x, windows, 0)), windows)


def _share(dy: Tensor, windows: Windows) -> Tensor:
    """Share ``dy`` equally among all elements of each window."""
    share = divide_by_counts(dy, windows)
    return untap([share for _ in places(windows)], windows)


def _route_to_largest(dy: Tensor, x: Tensor, output: Tensor, windows: Windows) -> Tensor:
    chosen = find_first_matches(x, output, windows)
    return untap([where(taken, dy, 0.0) for taken in chosen], windows)


decompositions.of(ops.MAX_POOL)(
    lambda x, *, attributes: _take_largest(x, ops.geometry(x.shape, **attributes))
)
decompositions.of(ops.MAX_POOL_GRAD)(
    lambda dy, input, output, *, attributes: _route_to_largest(
        dy, input, output, ops.geometry(input.shape, **attributes)
    )
)


@decompositions.of(ops.MAX_POOL_3D)
def max_pool_3d(x: Tensor, *, data_format: str, attributes: dict[str, Any]) -> Tensor:
    windows = ops.geometry(x.shape, **attributes)
    return from_channels_last(
        _take_largest(to_channels_last(x, data_format), windows), data_format
    )


@decompositions.of(ops.MAX_POOL_3D_GRAD)
def max_pool_3d_grad(
    dy: Tensor, input: Tensor, output: Tensor, *, data_format: str, attributes: dict[str, Any]
) -> Tensor:
    windows = ops.geometry(input.shape, **attributes)
    last_dy, x, largest = (to_channels_last(image, data_format) for image in (dy, input, output))
    return from_channels_last(_route_to_largest(last_dy, x, largest, windows), data_format)


decompositions.of(ops.AVG_POOL)(
    lambda x, *, attributes: _take_average(x, ops.geometry(x.shape, **attributes))
)
decompositions.of(ops.AVG_POOL_GRAD)(
    lambda dy, input, *, attributes: _share(dy, ops.geometry(input.shape, **attributes))
)


@decompositions.of(ops.AVG_POOL_3D)
def avg_pool_3d(x: Tensor, *, data_format: str, attributes: dict[str, Any]) -> Tensor:
    windows = ops.geometry(x.shape, **attributes)
    return from_channels_last(
        _take_average(to_channels_last(x, data_format), windows), data_format
    )


@decompositions.of(ops.AVG_POOL_3D_GRAD)
def avg_pool_3d_grad(
    dy: Tensor, input: Tensor, *, data_format: str, attributes: dict[str, Any]
) -> Tensor:
    windows = ops.geometry(input.shape, **attributes)
    return from_channels_last(_share(to_channels_last(dy, data_format), windows), data_format)


@decompositions.of(POOL)
def pool(
    input: Tensor, *, pooling_type: str, attributes: dict[str, Any], out: TensorType
) -> Tensor:
    windows = pool_geometry(input.shape, **attributes)
    if pooling_type == "max":
        return _take_largest(input, windows)
    return _take_average(astype(input, out.dtype), windows)


@decompositions.of(argmax_pooling.MAX_POOL_WITH_ARGMAX)
def max_pool_with_argmax(
    x: Tensor, *, filter_size: Any, strides: Any, pad: Any, include_batch_in_index: bool
) -> list[Tensor]:
    windows = ops.geometry(x.shape, filter_size=filter_size, strides=strides, pad=pad)
    result = _take_largest(x, windows)
    steps = [prod(x.shape[axis + 1 :]) for axis in range(4)]  # between neighbours, flattened
    corner = _count_along(result, 3, 0, 1)
    if include_batch_in_index:
        corner = corner + _count_along(result, 0, 0, steps[0])
    for axis, window in enumerate(windows, start=1):
        first, step = -window.before * steps[axis], window.stride * steps[axis]
        corner = corner + _count_along(result, axis, first, step)
    indexes = full(result.shape, -1, dtype=dt.kernel_int)
    for tap, chosen in zip(places(windows), find_first_matches(x, result, windows), strict=True):
        offset = sum(
            at * window.dilation * steps[axis]
            for axis, (at, window) in enumerate(zip(tap, windows, strict=True), start=1)
        )
        indexes = where(chosen, corner + offset, indexes)
    return [result, broadcast_to(indexes, result.shape)]


def _count_along(like: Tensor, axis: int, first: int, step: int) -> Tensor:
    """Return ``first``, ``first + step``, ... along one axis of a shape, for broadcasting."""
    length = like.shape[axis]
    numbers = arange(length, dtype=dt.kernel_int) * step + first
    return reshape(numbers, [length if at == axis else 1 for at in range(like.ndim)])
