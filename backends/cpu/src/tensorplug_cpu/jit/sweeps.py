"""Convolutions as sweeps: the same taps at every position of a grid, with strides on either side.

The convolution itself is one sweep over the positions of its windows. The gradient of the image
reads dy; with a stride of s along an axis, elements whose places have the same remainder by s see
the same taps, so that there is one sweep per remainder, and no product with a known zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import Window, Windows
from tensorplug_cpu.sliding_windows import padded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug_cpu.arrays import Array

__all__ = ["Axis", "Grid", "Slices", "Sweep", "backward", "forward"]

Slices = tuple[slice, slice]  # images, and places along the first spatial axis


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a sweep.

    The result at ``start + q * step``, for q below ``count``, is the sum over ``taps`` (number
    of the tap, shift) of the source at ``q * reads + shift``, which is 0 beyond ``size``.
    """

    size: int
    count: int
    start: int
    step: int
    reads: int
    taps: tuple[tuple[int, int], ...]

    @property
    def low(self) -> int:
        """Where the first place begins to read."""
        return min(shift for _, shift in self.taps)

    def window(self, first: int, last: int) -> tuple[slice, Window]:
        """Return what the places from ``first`` up to ``last`` read: elements, and padding.

        Together they begin where ``first`` begins to read.
        """
        low = first * self.reads + self.low
        high = (last - 1) * self.reads + max(shift for _, shift in self.taps) + 1
        if low >= self.size or high <= 0:
            return slice(0, 0), _padding(0, high - low, 0)
        start, stop = max(low, 0), min(high, self.size)
        return slice(start, stop), _padding(stop - start, start - low, high - stop)

    def whole(self) -> tuple[int, Window]:
        """Return all elements and their padding, and where the first place begins to read."""
        reach = (self.count - 1) * self.reads + max(shift for _, shift in self.taps) + 1
        before = max(0, -self.low)
        return before + self.low, _padding(self.size, before, max(0, reach - self.size))


def _padding(size: int, before: int, after: int) -> Window:
    return Window(size, 1, 1, 1, before, after, 0)


Sweep = tuple[Axis, ...]


def forward(at: Windows) -> list[Sweep]:
    """Return the sweep of a convolution over its image."""
    return [
        tuple(
            Axis(
                window.size,
                window.out,
                0,
                1,
                window.stride,
                tuple(
                    (tap, tap * window.dilation - window.before) for tap in range(window.filter)
                ),
            )
            for window in at
        )
    ]


def backward(at: Windows) -> list[Sweep]:
    """Return the sweeps over dy whose results together are the gradient of the image."""
    return list(product(*(list(_remainders(window)) for window in at)))


def _remainders(window: Window) -> Iterator[Axis]:
    for start in range(min(window.stride, window.size)):
        taps = [
            (tap, (start + window.before - tap * window.dilation) // window.stride)
            for tap in reversed(range(window.filter))  # by rising shift
            if (start + window.before - tap * window.dilation) % window.stride == 0
        ]
        count = -(-(window.size - start) // window.stride)
        yield Axis(window.out, count, start, window.stride, 1, tuple(taps))


class Grid:
    """A sweep over images of ``channels``: its pieces, and where their rows and windows begin.

    Args:
        sweep: with a tap and a place along each axis.
        batch: the number of images.
        channels: of the source.
        elements: how many of the source a piece may read, about.
        least: how many pieces there should be, so that threads can share them.

    """

    def __init__(self, sweep: Sweep, batch: int, channels: int, elements: int, least: int) -> None:
        self.sweep, self.channels = sweep, channels
        beside = [axis.whole() for axis in sweep[1:]]
        self._beside = tuple(window for _, window in beside)
        extents = [window.before + window.size + window.after for window in self._beside]
        self._strides = [channels * prod(extents[at:]) for at in range(len(sweep))]
        self._origin = sum(
            origin * stride for (origin, _), stride in zip(beside, self._strides[1:], strict=True)
        )
        self.pieces = _pieces(sweep, batch, elements // channels, least)
        self._height = max(rows.stop - rows.start for _, rows in self.pieces)
        self._images = max(images.stop - images.start for images, _ in self.pieces)
        self.width = sweep[-1].count

    def source(self, x: Array, piece: Slices) -> Array:
        """Return the part of ``x`` that a piece reads, with its padding, contiguous."""
        images, rows = piece
        elements, window = self.sweep[0].window(rows.start, rows.stop)
        return padded(x[images, elements], (window, *self._beside), 0)

    def rows(self, piece: Slices) -> int:
        """Return the number of rows of a piece."""
        images, rows = piece
        inner = prod(axis.count for axis in self.sweep[1:-1])
        return len(range(images.start, images.stop)) * len(range(rows.start, rows.stop)) * inner

    def reads(self) -> Array:
        """Return where each row of a piece begins in its source."""
        first = self.sweep[0]
        _, window = first.window(0, self._height)
        image = (window.before + window.size + window.after) * self._strides[0]
        steps = [
            axis.reads * stride for axis, stride in zip(self.sweep, self._strides, strict=True)
        ]
        return self._table(image, steps)

    def writes(self, strides: Sequence[int]) -> Array:
        """Return where each row of a piece begins in the result; ``strides``: of its axes."""
        steps = [axis.step * stride for axis, stride in zip(self.sweep, strides[1:], strict=True)]
        return self._table(strides[0], steps)

    def _table(self, image: int, steps: Sequence[int]) -> Array:
        counts = [self._images, self._height, *(axis.count for axis in self.sweep[1:-1])]
        total = np.zeros((), np.int64)
        for count, step in zip(counts, [image, *steps], strict=False):
            total = total[..., None] + np.arange(count, dtype=np.int64) * step
        return np.ascontiguousarray(total.reshape(-1))

    def begin(self, piece: Slices, strides: Sequence[int]) -> int:
        """Return the place in the result where a piece begins."""
        images, rows = piece
        starts = [int(images.start), *(axis.start for axis in self.sweep)]
        starts[1] += int(rows.start) * self.sweep[0].step
        return sum(start * stride for start, stride in zip(starts, strides, strict=True))

    def taps(self, sizes: Sequence[int]) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the taps in the order of memory, and the runs that they read in the source.

        The number of each tap in a filter of ``sizes``; the offset and the length of each run of
        neighbouring elements, from the start of a row.
        """
        numbers: list[int] = []
        runs: list[tuple[int, int]] = []
        for taps in product(*(axis.taps for axis in self.sweep)):
            number, offset = 0, self._origin
            for (tap, shift), size, axis, stride in zip(
                taps, sizes, self.sweep, self._strides, strict=True
            ):
                number = number * size + tap
                offset += (shift - axis.low) * stride
            numbers.append(number)
            if runs and sum(runs[-1]) == offset:
                runs[-1] = (runs[-1][0], runs[-1][1] + self.channels)
            else:
                runs.append((offset, self.channels))
        return numbers, runs


def _pieces(sweep: Sweep, batch: int, elements: int, least: int) -> list[Slices]:
    first, *others = sweep
    row = max(1, prod(axis.size for axis in others)) * first.reads
    images = max(1, min(elements // (row * first.count), batch // least))
    if images > 1 or batch >= least:
        return [
            (slice(at, min(at + images, batch)), slice(0, first.count))
            for at in range(0, batch, images)
        ]
    rows = min(elements // row, -(-first.count * batch // least))
    rows = min(max(rows, len(first.taps)), first.count)  # neighbours read some rows twice
    return [
        (slice(at, at + 1), slice(start, min(start + rows, first.count)))
        for at in range(batch)
        for start in range(0, first.count, rows)
    ]
