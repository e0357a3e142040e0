"""Convolutions on NHWC arrays, and their gradients, as native loops over the padded image.

There may be any number of spatial axes from two on. The image is padded piece by piece, in memory
that stays in the cache; nothing else is copied but the filter, once. Every element is added in
the same order however many threads there are.

By hand, for the forms took 1.0 to 1.4 times as long with many channels, and 3.2 times with one.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu.jit.families.filter_gradients import FilterGradient
from tensorplug_cpu.jit.families.interleaving import find_interleaver
from tensorplug_cpu.jit.loops import iteration_space
from tensorplug_cpu.jit.loops.calls import address, dense, is_worth
from tensorplug_cpu.jit.loops.panels import to_panels
from tensorplug_cpu.jit.loops.partitions import (
    Call,
    Tables,
    even,
    make_calls,
    make_grid,
    tile_size,
)
from tensorplug_cpu.jit.loops.prepared import prepare
from tensorplug_cpu.jit.loops.products import sweep_function
from tensorplug_cpu.memory.pool import allocator

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from tensorplug.plugin import Shape, Windows
    from tensorplug_cpu.arrays import Array

    Native = Callable[..., Array]


_FEW: Final = 3  # channels of an image, fewer of which leave the vectors of its gradient idle
_SHORT: Final = 8  # neighbouring elements under a window, fewer of which are not worth a loop
_BLOCK: Final = 512  # numbers added one after the other; more would lose digits


class _Pass:
    """One sweep of a convolution."""

    def __init__(
        self,
        sweep: iteration_space.Sweep,
        batch: int,
        filter: Shape,
        result: Shape,
        dtype: np.dtype[Any],
    ) -> None:
        *sizes, channels, columns = filter
        work = batch * prod(axis.count for axis in sweep) * prod(filter)
        grid = make_grid(sweep, batch, channels, work)
        order, runs = grid.taps(sizes)
        self._order = np.array(order, np.int64)
        lengths = {length for _, length in runs}
        self._runs, self._blocks = _blocks(runs)
        short = max(lengths) <= _SHORT and len(lengths) == len(self._blocks) == 1
        self._run_length = lengths.pop() if short else 0
        self._length = len(self._order) * channels
        self._columns = columns
        self._reads = grid.reads()
        strides = [prod(result[at:]) for at in range(1, len(result))]
        self._writes = grid.writes(strides)
        self._tables = Tables(grid, strides)
        self._padded = grid.padded
        self._step = sweep[-1].reads * channels
        self._tile = tile_size(dtype, columns, grid.width)
        self._type = dtype.name
        self._pointers = [*map(address, (self._reads, self._writes, self._runs, self._blocks))]
        self._integers = [
            *self._tables.sizes,
            len(grid.pieces),
            grid.width,
            sweep[-1].step * columns,
            columns,
            self._length,
            len(self._blocks),
        ]
        self.room = self._tables.room

    def form(self) -> Hashable:
        """Return what the panels of a filter depend on."""
        return self._tile, self._order.tobytes()

    def panels(self, filter: Array) -> Array:
        """Return the filter [taps, channels, columns] as [panels, taps * channels, columns]."""
        return to_panels(filter, self._order, self._tile)

    def call(
        self,
        source: Array,
        panels: Array,
        result: Array,
        bias: Array | None,
        slope: Array | None,
        epilogue: str,
    ) -> Call:
        """Return the native call, which is over before any of these arrays may go."""
        function = sweep_function(
            self._type,
            self._tile,
            self._step,
            self._run_length,
            epilogue,
            padded=self._padded,
            bias=bias is not None,
        )
        ends = [0 if array is None else address(array) for array in (bias, slope)]
        pointers = [
            address(source),
            *self._tables.pointers,
            address(panels),
            address(result),
            *ends,
            *self._pointers,
        ]
        return function, pointers, self._integers


def _blocks(runs: list[tuple[int, int]]) -> tuple[Array, Array]:
    """Cut runs into blocks of equal length; return the runs, and (first, last, row) of blocks."""
    total = sum(length for _, length in runs)
    size = even(total, _BLOCK)
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
        parts: list[iteration_space.Sweep],
        batch: int,
        filter: Shape,
        result: Shape,
        dtype: np.dtype[Any],
    ) -> None:
        kept = [sweep for sweep in parts if all(axis.taps for axis in sweep)]
        self._passes = [_Pass(sweep, batch, filter, result, dtype) for sweep in kept]
        self._whole = len(kept) == len(parts)
        self._room = max((part.room for part in self._passes), default=0)
        self._allocate, self._type = allocator(result, dtype), dtype
        self._work = prod(filter) * batch * prod(axis.count for axis in parts[0])
        images = batch, *(axis.size for axis in parts[0]), filter[-2]
        self._interleave = find_interleaver(images, dtype)

    def __call__(
        self,
        source: Array,
        filter: Array,
        bias: Array | None = None,
        slope: Array | None = None,
        epilogue: str = "linear",
    ) -> Array:
        """Return the result.

        Args:
            source: NHWC.
            filter: [*taps, channels of the source, those of the result].
            bias: one number per channel of the result, to add.
            slope: what to multiply negative numbers with if ``epilogue`` is "slope".
            epilogue: the activation, of ``products.EPILOGUES``.

        """
        return self._filled(self._ordered(source), self._panels(filter), bias, slope, epilogue)

    def bind(
        self,
        filter: Array,
        bias: Array | None = None,
        slope: Array | None = None,
        epilogue: str = "linear",
    ) -> Native:
        """Return a function of the source alone, which keeps the filter as loops read it."""
        form = "panels", *[part.form() for part in self._passes]
        kept = prepare(filter, form, self._panels)
        return lambda source: self._filled(
            self._ordered(source), kept.result, bias, slope, epilogue
        )

    def _ordered(self, source: Array) -> Array:
        """Return the images in row-major order."""
        if self._interleave is None or source.flags.c_contiguous:
            return dense(source)
        interleaved = self._interleave(source)
        return dense(source) if interleaved is None else interleaved

    def _panels(self, filter: Array) -> list[Array]:
        taps = filter.reshape(-1, *filter.shape[-2:])
        return [part.panels(taps) for part in self._passes]

    def _filled(
        self,
        source: Array,
        panels: list[Array],
        bias: Array | None,
        slope: Array | None,
        epilogue: str,
    ) -> Array:
        result = self._allocate()
        if not self._whole:
            result.fill(0)
        calls = [
            part.call(source, taps, result, bias, slope, epilogue)
            for part, taps in zip(self._passes, panels, strict=True)
        ]
        make_calls(calls, self._room, self._type, self._work)
        return result


def forward(at: Windows, batch: int, filter: Shape, dtype: np.dtype[Any]) -> Convolution | None:
    """Return the convolution of images with a filter [KH,KW,C,F], None if it is not worthwhile."""
    result = (batch, *(window.out for window in at), filter[-1])
    if not is_worth(prod(result) * prod(filter[:-1])):
        return None
    return Convolution(iteration_space.forward(at), batch, filter, result, dtype)


def gradient_of_image(
    at: Windows, batch: int, filter: Shape, dtype: np.dtype[Any]
) -> Native | None:
    """Return the gradient of images, from dy and a filter [KH,KW,C,F]; None as ``forward``."""
    *sizes, channels, columns = filter
    result = (batch, *(window.size for window in at), channels)
    positions = prod(window.out for window in at)
    if channels < _FEW or not (is_worth(batch * positions * prod(filter)) and all(result)):
        return None
    run = Convolution(
        iteration_space.backward(at), batch, (*sizes, columns, channels), result, dtype
    )
    return lambda dy, taps: run(dy, taps.swapaxes(-1, -2))


def gradient_of_filter(
    at: Windows, batch: int, filter: Shape, dtype: np.dtype[Any]
) -> Native | None:
    """Return the gradient of a filter [KH,KW,C,F], from images and dy; None as ``forward``."""
    if not is_worth(batch * prod(window.out for window in at) * prod(filter)):
        return None
    return FilterGradient(at, batch, filter, dtype)
