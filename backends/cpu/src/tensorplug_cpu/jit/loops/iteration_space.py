"""Convolutions as sweeps: the same taps at every position of a grid, with strides on either side.

The convolution itself is one sweep over the positions of its windows. The gradient of the image
reads dy; with a stride of s along an axis, elements whose indices have the same remainder by s see
the same taps, so that there is one sweep per remainder, and no product with a known zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug.plugin import Window, Windows
    from tensorplug_cpu.arrays import Array


Slices = tuple[slice, slice]  # images, and positions along the first spatial axis


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
        """Where the first position begins to read."""
        return min(shift for _, shift in self.taps)

    def reach(self, count: int) -> int:
        """Return how many elements lie from first to last that ``count`` positions read."""
        return (count - 1) * self.reads + max(shift for _, shift in self.taps) - self.low + 1

    def whole(self) -> tuple[int, int, int]:
        """Return the padding before all elements and after them, and where reading begins."""
        before = max(0, -self.low)
        return before, max(0, self.low + self.reach(self.count) - self.size), before + self.low


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

    A piece reads from its lines: rows of elements with their padding, one after the other. Where
    there is no padding, it reads from the images instead.

    Args:
        sweep: with a tap and a position along each axis.
        batch: the number of images.
        channels: of the source.
        elements: how many of the source the rows of a piece may read, about, and its images.
        least: how many pieces there should be, so that threads can share them.

    """

    def __init__(
        self, sweep: Sweep, batch: int, channels: int, elements: tuple[int, int], least: int
    ) -> None:
        self.sweep, self.channels = sweep, channels
        first, *others = sweep
        beside = [axis.whole() for axis in others]
        self._extents = [
            before + axis.size + after
            for axis, (before, after, _) in zip(others, beside, strict=True)
        ]
        self._strides = [channels * prod(self._extents[at:]) for at in range(len(sweep))]
        self._origin = sum(
            origin * stride for (*_, origin), stride in zip(beside, self._strides[1:], strict=True)
        )
        within = first.low >= 0 and first.low + first.reach(first.count) <= first.size
        self.padded = not within or any(before or after for before, after, _ in beside)
        self._befores = [before for before, *_ in beside]
        self.pieces = _pieces(
            sweep, batch, (elements[0] // channels, elements[1] // channels), least
        )
        self._height = max(rows.stop - rows.start for _, rows in self.pieces)
        self._images = max(images.stop - images.start for images, _ in self.pieces)
        self.image = channels * prod(axis.size for axis in sweep)
        self.width = sweep[-1].count

    @property
    def line(self) -> tuple[int, int, int]:
        """The elements of a line before those of the source, of the source, and all of them."""
        before, size = self._befores[-1], self.sweep[-1].size
        return before * self.channels, size * self.channels, self._strides[-2]

    @property
    def room(self) -> int:
        """How many elements the lines of a piece have at most."""
        lines = self._images * self.sweep[0].reach(self._height)
        return int(lines * self._strides[0])

    def lines(self) -> Array:
        """Return where each line of an image has its elements in the source, -1 for padding."""
        first = self.sweep[0]
        positions = [first.low + np.arange(first.reach(first.count))]
        for before, extent in zip(self._befores, self._extents[:-1], strict=False):
            positions.append(np.arange(extent) - before)
        total, known = np.zeros((), np.int64), np.ones((), np.bool_)
        for number, position in enumerate(positions):
            step = self.channels * prod(axis.size for axis in self.sweep[number + 1 :])
            total = total[..., None] + position * step
            known = known[..., None] & (position >= 0) & (position < self.sweep[number].size)
        return np.where(known, total, -1).reshape(-1)

    def table(self, strides: Sequence[int]) -> Array:
        """Return a row for each piece; ``strides``: of the axes of the result.

        Where it begins in the source and in the result; the number of its rows, of its images,
        of the first line of each, and of lines.
        """
        first = self.sweep[0]
        inner = self._strides[0] // self._strides[-2]
        table = []
        for images, rows in self.pieces:
            count, height = images.stop - images.start, rows.stop - rows.start
            start = rows.start * first.reads
            source = images.start * self.image
            if not self.padded:
                source += (start + first.low) * self._strides[0]
            begins = [images.start, *(axis.start for axis in self.sweep)]
            begins[1] += rows.start * first.step
            target = sum(begin * stride for begin, stride in zip(begins, strides, strict=True))
            middle = prod(axis.count for axis in self.sweep[1:-1])
            lines = start * inner, first.reach(height) * inner
            table.append((source, target, count * height * middle, count, *lines))
        return np.array(table, np.int64)

    def reads(self) -> Array:
        """Return where each row of a piece begins in its source."""
        first = self.sweep[0]
        height = first.reach(self._height) if self.padded else first.size
        steps = [
            axis.reads * stride for axis, stride in zip(self.sweep, self._strides, strict=True)
        ]
        return self._table(height * self._strides[0], steps)

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


def _pieces(sweep: Sweep, batch: int, elements: tuple[int, int], least: int) -> list[Slices]:
    first, *others = sweep
    many, few = elements
    row = max(1, prod(axis.size for axis in others)) * first.reads
    images = max(1, min(few // (row * first.count), batch // least))
    if row * first.count <= many and (images > 1 or batch >= least):
        return [
            (slice(at, min(at + images, batch)), slice(0, first.count))
            for at in range(0, batch, images)
        ]
    rows = min(many // row, -(-first.count * batch // least))
    rows = min(max(rows, len(first.taps)), first.count)  # neighbours read some rows twice
    return [
        (slice(at, at + 1), slice(start, min(start + rows, first.count)))
        for at in range(batch)
        for start in range(0, first.count, rows)
    ]
