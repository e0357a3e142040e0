"""Gradients of the filters of convolutions, as native loops over the padded image.

By hand, for the forms took 1.3 to 1.9 times as long.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu.execution.parallel import thread_count
from tensorplug_cpu.jit.loops import iteration_space
from tensorplug_cpu.jit.loops.calls import address, dense
from tensorplug_cpu.jit.loops.partitions import Tables, even, make_calls, make_grid, tile_size
from tensorplug_cpu.jit.loops.products import filter_function, most_positions

if TYPE_CHECKING:
    from tensorplug.plugin import Shape, Windows
    from tensorplug_cpu.arrays import Array


_SHORT: Final = 8  # neighbouring elements under a window, fewer of which are not worth a loop
_SCATTERED: Final = 12  # elements of a tile that takes several such runs
_GROUP: Final = 128  # positions whose products are added one after the other
_CHUNKS: Final = 8  # parts of a batch whose filter gradients are computed apart
_WIDE: Final = 1 << 16  # elements of a filter from which it is shared out instead


class FilterGradient:
    """The gradient of a filter [KH,KW,C,F] from images and dy."""

    def __init__(self, at: Windows, batch: int, filter: Shape, dtype: np.dtype[Any]) -> None:
        *sizes, channels, columns = filter
        (sweep,) = iteration_space.forward(at)
        self._length = prod(sizes) * channels
        self._columns = columns
        self._shared = self._length * columns >= _WIDE
        self._work = prod(filter) * batch * prod(window.out for window in at)
        grid = make_grid(sweep, batch, channels, self._work)
        _, runs = grid.taps(sizes)
        offsets = [offset + at for offset, length in runs for at in range(length)]
        self._offsets = np.array(offsets, np.int64)
        lengths = {length for _, length in runs}
        size = min(lengths)
        tile = tile_size(dtype, columns, max(size, _SHORT))
        positions = tile.positions
        self._run_length = size if size <= positions and size < _SHORT and len(lengths) == 1 else 0
        if self._run_length:
            most = min(most_positions(tile.vectors), _SCATTERED)
            self._tile = tile._replace(positions=size * even(len(runs), most // size))
            runs = [(0, self._length)]
        else:
            self._tile = tile_size(dtype, columns, size)
        cut = _cut(runs, self._tile.positions)
        self._runs = np.array(cut, np.int64)
        strides = [
            prod(window.out for window in at[axis:]) * columns for axis in range(len(at) + 1)
        ]
        self._reads, self._upstream = grid.reads(), grid.writes(strides)
        self._tables, self._padded = Tables(grid, strides), grid.padded
        self._count = 1 if self._shared else min(_CHUNKS, len(grid.pieces))
        parts = min(thread_count(), len(cut)) if self._shared else 1
        self._items = np.array(
            [
                (*pieces, *taken, number * self._length * columns)
                for number, pieces in enumerate(_stretches(len(grid.pieces), self._count))
                for taken in _stretches(len(cut), parts)
            ],
            np.int64,
        )
        tables = self._reads, self._upstream, self._items, self._runs, self._offsets
        self._pointers = [*map(address, tables)]
        group = _GROUP * (4 if self._shared else 1)
        self._integers = [
            *self._tables.sizes,
            len(self._items),
            max(1, group // grid.width),
            grid.width,
            sweep[-1].reads * channels,
            columns,
        ]
        self._shape, self._type, self._name = filter, dtype, dtype.name

    def __call__(self, x: Array, dy: Array) -> Array:
        """Return the gradient from ``x`` and ``dy``, both NHWC."""
        x, dy = dense(x), dense(dy)
        totals = np.zeros((self._count, self._length, self._columns), self._type)
        function = filter_function(
            self._name, self._tile, padded=self._padded, run_length=self._run_length
        )
        pointers = [
            address(x),
            *self._tables.pointers,
            address(dy),
            address(totals),
            *self._pointers,
        ]
        make_calls(
            [(function, pointers, self._integers)], self._tables.room, self._type, self._work
        )
        total = totals[0] if self._count == 1 else totals.sum(axis=0)
        return np.reshape(total, self._shape)


def _stretches(length: int, count: int) -> list[tuple[int, int]]:
    """Return where ``count`` neighbouring parts of ``length`` begin and end."""
    return list(pairwise(length * part // count for part in range(count + 1)))


def _cut(runs: list[tuple[int, int]], positions: int) -> list[tuple[int, int, int]]:
    """Cut runs into shorter ones; return offset, first row of the gradient and length of each."""
    result, row = [], 0
    for run in runs:
        offset, length = run
        while length:
            taken = 8 * positions if length >= 9 * positions else length
            result.append((offset, row, taken))
            offset, length, row = offset + taken, length - taken, row + taken
    return result
