"""Windows as lists of taps, for convolution and pooling in primitive ops.

Tensors have their channels last (NHWC, NDHWC). Tap (i, j) of a window is the tensor
[batch, out height, out width, channels] of the elements under it at all positions.
"""

from __future__ import annotations

from functools import reduce
from itertools import product
from typing import TYPE_CHECKING

from tensorplug.contract.windows import channel_axis
from tensorplug.ops import creation, extents, movement
from tensorplug.ops.elementwise.arithmetic import maximum
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import (
    equal,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
)
from tensorplug.ops.indexing.getting import getitem
from tensorplug.ops.order import lowest

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import Scalar
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.windows import Window, Windows
    from tensorplug.dispatch.tensor import Tensor


def places(windows: Windows) -> product[tuple[int, ...]]:
    """Return the indices of the window's taps in row-major order: (0, 0), (0, 1), ..."""
    return product(*(range(window.filter) for window in windows))


def taps(x: Tensor, windows: Windows, fill: Scalar) -> list[Tensor]:
    """Return the taps of ``x``, padded with ``fill``, in row-major order of the window."""
    padded = extents.pad(
        x, ((0, 0), *(_pad_of_window(window) for window in windows), (0, 0)), fill
    )
    return [
        getitem(padded, (slice(None), *map(_slice_positions, windows, tap)))
        for tap in places(windows)
    ]


def untap(parts: list[Tensor], windows: Windows) -> Tensor:
    """Return the sum of the taps at their places: the transpose of ``taps``."""
    total = None
    for part, place in zip(parts, places(windows), strict=True):
        spread = part
        for axis, (window, tap) in enumerate(zip(windows, place, strict=True), start=1):
            spread = _spread(spread, window, tap, axis)
        total = spread if total is None else total + spread
    assert total is not None  # a window has at least one tap
    begin = (0, *(window.before for window in windows), 0)
    sizes = (total.shape[0], *(window.size for window in windows), total.shape[-1])
    return extents.slice(total, begin, sizes)


def to_channels_last(x: Tensor, data_format: str) -> Tensor:
    """Return ``x`` with its channels on the last axis."""
    axis = channel_axis(data_format)
    if axis == x.ndim - 1:
        return x
    return movement.permute_dims(x, (*(at for at in range(x.ndim) if at != axis), axis))


def from_channels_last(x: Tensor, data_format: str) -> Tensor:
    """Return ``x``, whose channels are on the last axis, in ``data_format``."""
    axis = channel_axis(data_format)
    if axis == x.ndim - 1:
        return x
    return movement.permute_dims(x, (*range(axis), x.ndim - 1, *range(axis, x.ndim - 1)))


def find_first_matches(x: Tensor, out: Tensor, windows: Windows) -> list[Tensor]:
    """Return for each tap whether it is the first maximum in row-major order.

    NaN is a maximum; padding never is.
    """
    return _choose_first(taps(x, windows, 0), _mark_inside(x.shape, windows), out)


def find_largest_sums(x: Tensor, filter: Tensor, windows: Windows) -> tuple[Tensor, list[Tensor]]:
    """Return the largest ``tap + filter[tap]`` of each window, and whether it is at each tap.

    Among equals it is at the first in row-major order. NaN is a maximum; padding never is.
    """
    inside = _mark_inside(x.shape, windows)
    least = lowest(x.dtype)
    sums = [
        where(real, tap + getitem(filter, place), least)
        for tap, place, real in zip(taps(x, windows, 0), places(windows), inside, strict=True)
    ]
    best = reduce(maximum, sums)
    return best, _choose_first(sums, inside, best)


def _mark_inside(shape: Shape, windows: Windows) -> list[Tensor]:
    """Return for each tap whether it lies on the image."""
    return taps(creation.full(shape, fill_value=True), windows, fill=False)


def _choose_first(candidates: list[Tensor], inside: list[Tensor], out: Tensor) -> list[Tensor]:
    """Return for each candidate whether it is the first inside that equals ``out`` or is NaN."""
    taken = None
    chosen = []
    for candidate, real in zip(candidates, inside, strict=True):
        same = logical_and(
            real, logical_or(equal(candidate, out), not_equal(candidate, candidate))
        )
        first = same if taken is None else logical_and(same, logical_not(taken))
        chosen.append(first)
        taken = first if taken is None else logical_or(taken, first)
    return chosen


def _pad_of_window(window: Window) -> tuple[int, int]:
    return (window.before, max(window.after, 0))


def _slice_positions(window: Window, tap: int) -> slice:
    first = tap * window.dilation
    return slice(first, first + _measure_reach(window), window.stride)


def _measure_reach(window: Window) -> int:
    """Return the length of the range from a tap's first to its last position."""
    return (window.out - 1) * window.stride + 1 if window.out else 0


def _spread(part: Tensor, window: Window, tap: int, axis: int) -> Tensor:
    """Return ``part`` with its positions along ``axis`` moved to the places of tap ``tap``."""
    shape = list(part.shape)
    if window.stride > 1:
        # Interleave with zeros: a new axis of length 1 is padded to the stride and merged.
        opened = movement.expand_dims(part, axis=axis + 1)
        pads = [(0, 0)] * opened.ndim
        pads[axis + 1] = (0, window.stride - 1)
        shape[axis] *= window.stride
        part = movement.reshape(extents.pad(opened, pads), shape)
    reach = _measure_reach(window)
    length = window.before + window.size + max(window.after, 0)
    begin, size = [0] * part.ndim, list(part.shape)
    size[axis] = reach
    pads = [(0, 0)] * part.ndim
    # Without positions, a tap may lie outside an empty axis.
    first = tap * window.dilation if reach else 0
    pads[axis] = (first, length - first - reach)
    return extents.pad(extents.slice(part, begin, size), pads)
