"""Convolutions on NHWC arrays, and their gradients, as native loops over the padded image.

There may be any number of spatial axes from two on. The image is padded piece by piece, in memory
that stays in the cache; nothing else is copied but the filter, once. Every element is added in
the same order however many threads there are.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu.jit import sweeps
from tensorplug_cpu.jit.calls import address, dense, each, is_worth
from tensorplug_cpu.jit.loops import lanes
from tensorplug_cpu.jit.products import filter_function, most_places, sweep_function
from tensorplug_cpu.memory_pool import empty
from tensorplug_cpu.parallel import thread_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Shape, Windows
    from tensorplug_cpu.arrays import Array

    Native = Callable[..., Array]

__all__ = ["forward", "gradient_of_filter", "gradient_of_image"]

_FEW: Final = 3  # channels of an image, fewer of which leave the vectors of its gradient idle
_PIECE: Final = 1 << 17  # elements of a piece of the image: they stay in a second-level cache
_PIECES: Final = 16  # at most, that threads share
_PRODUCTS: Final = 1 << 19  # multiplications of a piece, fewer of which are not worth a call
_BLOCK: Final = 512  # numbers added one after the other; more would lose digits
_GROUP: Final = 128  # likewise, places whose products make up a filter's gradient
_CHUNKS: Final = 8  # parts of a batch whose filter gradients are computed apart
_WIDE: Final = 1 << 16  # elements of a filter from which it is shared out instead


def _even(length: int, most: int) -> int:
    """Return the size of equal tiles, of which the last may overlap the one before."""
    return -(-length // -(-length // most))


def _count(products: int, most: int) -> int:
    """Return into how many pieces so many multiplications are cut, if the batch allows."""
    return max(1, min(most, products // _PRODUCTS))


def _tile(dtype: np.dtype[Any], columns: int, length: int) -> tuple[int, int, int]:
    """Return the lanes, vectors and places of a tile: columns times something of ``length``."""
    width = lanes(dtype.itemsize, columns)
    count = -(-columns // width)
    vectors = min(count, 2 if length > 4 else 12 // length)
    return width, vectors, _even(length, most_places(vectors))


class _Pass:
    """One sweep of a convolution."""

    def __init__(
        self, sweep: sweeps.Sweep, batch: int, filter: Shape, result: Shape, dtype: np.dtype[Any]
    ) -> None:
        *sizes, channels, columns = filter
        work = batch * prod(axis.count for axis in sweep) * prod(filter)
        least = _count(work, _PIECES)
        self._grid = grid = sweeps.Grid(sweep, batch, channels, _PIECE, least)
        self._order, runs = grid.taps(sizes)
        self._runs, self._blocks = _blocks(runs)
        self._length = len(self._order) * channels
        self._columns = columns
        self._reads = grid.reads()
        self._strides = [prod(result[at:]) for at in range(1, len(result))]
        self._writes = grid.writes(self._strides)
        self._apart = sweep[-1].step * columns
        self._step = sweep[-1].reads * channels
        self._tile = _tile(dtype, columns, grid.width)
        self._type, self._itemsize = dtype.name, dtype.itemsize
        self.pieces = grid.pieces

    def panels(self, filter: Array) -> Array:
        """Return the filter [taps, channels, columns] as [panels, taps * channels, columns]."""
        panel = self._tile[0] * self._tile[1]
        whole, rest = divmod(self._columns, panel)
        every = self._order == list(range(len(filter)))
        taps = filter if every else filter[self._order]
        rows = taps.reshape(self._length, self._columns)
        if whole == 1 and not rest:
            return np.ascontiguousarray(rows)
        result = empty((whole + bool(rest), self._length, panel), filter.dtype)
        split = rows[:, : whole * panel].reshape(self._length, whole, panel)
        np.copyto(result[:whole], split.swapaxes(0, 1))
        if rest:
            result[whole, :, :rest] = rows[:, whole * panel :]
            result[whole, :, rest:] = 0
        return result

    def run(self, piece: Any, source: Array, panels: Array, result: Array, *more: Any) -> None:
        """Compute a piece of the result."""
        grid = self._grid
        part = grid.source(source, piece)
        bias, slope, ending = more
        call = sweep_function(self._type, *self._tile, self._step, ending, bias=bias is not None)
        call(
            address(part),
            address(panels),
            address(result) + grid.begin(piece, self._strides) * self._itemsize,
            0 if bias is None else address(bias),
            0 if slope is None else address(slope),
            address(self._reads),
            address(self._writes),
            address(self._runs),
            address(self._blocks),
            grid.rows(piece),
            grid.width,
            self._apart,
            self._columns,
            self._length,
            len(self._blocks),
        )


def _blocks(runs: list[tuple[int, int]]) -> tuple[Array, Array]:
    """Cut runs into blocks of equal length; return the runs, and (first, last, row) of blocks."""
    total = sum(length for _, length in runs)
    size = _even(total, _BLOCK)
    cut, blocks = [], [0]
    room = size
    for run in runs:
        offset, length = run
        while length:
            taken = min(length, room)
            cut.append((offset, taken))
            offset, length, room = offset + taken, length - taken, room - taken
            if not room:
                blocks.append(len(cut))
                room = size
    if room < size:
        blocks.append(len(cut))
    rows = [(first, last, at * size) for at, (first, last) in enumerate(pairwise(blocks))]
    return np.array(cut, np.int64), np.array(rows, np.int64)


class Convolution:
    """A convolution, or the gradient of one with respect to the image.

    Args:
        parts: sweeps, which together compute the result.
        batch: the number of images.
        filter: its sizes, the channels of the source and those of the result.
        result: shape of the result.
        dtype: float32 or float64.

    """

    def __init__(
        self,
        parts: list[sweeps.Sweep],
        batch: int,
        filter: Shape,
        result: Shape,
        dtype: np.dtype[Any],
    ) -> None:
        kept = [sweep for sweep in parts if all(axis.taps for axis in sweep)]
        self._passes = [_Pass(sweep, batch, filter, result, dtype) for sweep in kept]
        self._whole = len(kept) == len(parts)
        self._result, self._type = result, dtype
        self._work = prod(filter) * batch * prod(axis.count for axis in parts[0])

    def __call__(
        self,
        source: Array,
        filter: Array,
        bias: Array | None = None,
        slope: Array | None = None,
        ending: str = "linear",
    ) -> Array:
        """Return the result.

        Args:
            source: NHWC.
            filter: [taps, channels of the source, those of the result].
            bias: one number per channel of the result, to add.
            slope: what to multiply negative numbers with if ``ending`` is "slope".
            ending: the activation, of ``products.ENDINGS``.

        """
        result = empty(self._result, self._type)
        if not self._whole:
            result.fill(0)
        items = [
            (part, piece, panels)
            for part in self._passes
            for panels in [part.panels(filter)]
            for piece in part.pieces
        ]

        def run(part: _Pass, piece: Any, panels: Array) -> None:
            part.run(piece, source, panels, result, bias, slope, ending)

        each(run, items, self._work)
        return result


class FilterGradient:
    """The gradient of a filter [KH,KW,C,F] from images and dy."""

    def __init__(self, at: Windows, batch: int, filter: Shape, dtype: np.dtype[Any]) -> None:
        *sizes, channels, columns = filter
        (sweep,) = sweeps.forward(at)
        self._length = prod(sizes) * channels
        self._columns = columns
        self._shared = self._length * columns >= _WIDE
        self._work = prod(filter) * batch * prod(window.out for window in at)
        least = _count(self._work, _CHUNKS)
        self._grid = grid = sweeps.Grid(sweep, batch, channels, _PIECE, least)
        _, runs = grid.taps(sizes)
        size = min(length for _, length in runs)
        self._tile = _tile(dtype, columns, size)
        self._runs = np.array(_cut(runs, self._tile[2]), np.int64)
        self._strides = [
            prod(window.out for window in at[axis:]) * columns for axis in range(len(at) + 1)
        ]
        self._reads = grid.reads()
        self._upstream = grid.writes(self._strides)
        self._step = sweep[-1].reads * channels
        group = _GROUP * (4 if self._shared else 1)
        self._group = max(1, group // grid.width)
        self._shape, self._type = filter, dtype

    def __call__(self, x: Array, dy: Array) -> Array:
        """Return the gradient from ``x`` and ``dy``, both NHWC."""
        pieces = self._grid.pieces
        dy = dense(dy)
        count = 1 if self._shared else min(_CHUNKS, len(pieces))
        edges = [len(pieces) * part // count for part in range(count + 1)]
        chunks = [pieces[first:last] for first, last in pairwise(edges)]
        parts = min(thread_count(), len(self._runs)) if self._shared else 1
        edges = [len(self._runs) * part // parts for part in range(parts + 1)]
        totals = np.zeros((count, self._length, self._columns), self._type)
        items = [
            (total, chunk, first, last)
            for total, chunk in zip(totals, chunks, strict=True)
            for first, last in pairwise(edges)
        ]
        each(partial(self._add, x, dy), items, self._work)
        total = totals[0] if count == 1 else totals.sum(axis=0)
        return np.reshape(total, self._shape)

    def _add(self, x: Array, dy: Array, total: Array, pieces: Any, first: int, last: int) -> None:
        grid = self._grid
        call = filter_function(self._type.name, *self._tile)
        for piece in pieces:
            source = grid.source(x, piece)
            call(
                address(source),
                address(dy) + grid.begin(piece, self._strides) * dy.itemsize,
                address(total),
                address(self._reads),
                address(self._upstream),
                address(self._runs),
                grid.rows(piece),
                self._group,
                grid.width,
                self._step,
                self._columns,
                first,
                last,
            )


def _cut(runs: list[tuple[int, int]], places: int) -> list[tuple[int, int, int]]:
    """Cut runs into shorter ones; return offset, first row of the gradient and length of each."""
    result, row = [], 0
    for run in runs:
        offset, length = run
        while length:
            taken = 8 * places if length >= 9 * places else length
            result.append((offset, row, taken))
            offset, length, row = offset + taken, length - taken, row + taken
    return result


def forward(at: Windows, batch: int, filter: Shape, dtype: np.dtype[Any]) -> Native | None:
    """Return the convolution of images with a filter [KH,KW,C,F], None if it is not worthwhile."""
    result = (batch, *(window.out for window in at), filter[-1])
    if not is_worth(prod(result) * prod(filter[:-1])):
        return None
    run = Convolution(sweeps.forward(at), batch, filter, result, dtype)
    return lambda x, taps, *ending: run(x, taps.reshape(-1, *filter[-2:]), *ending)


def gradient_of_image(
    at: Windows, batch: int, filter: Shape, dtype: np.dtype[Any]
) -> Native | None:
    """Return the gradient of images, from dy and a filter [KH,KW,C,F]; None as ``forward``."""
    *sizes, channels, columns = filter
    result = (batch, *(window.size for window in at), channels)
    places = prod(window.out for window in at)
    if channels < _FEW or not (is_worth(batch * places * prod(filter)) and all(result)):
        return None
    run = Convolution(sweeps.backward(at), batch, (*sizes, columns, channels), result, dtype)
    return lambda dy, taps: run(dy, taps.reshape(-1, channels, columns).swapaxes(1, 2))


def gradient_of_filter(
    at: Windows, batch: int, filter: Shape, dtype: np.dtype[Any]
) -> Native | None:
    """Return the gradient of a filter [KH,KW,C,F], from images and dy; None as ``forward``."""
    if not is_worth(batch * prod(window.out for window in at) * prod(filter)):
        return None
    return FilterGradient(at, batch, filter, dtype)
