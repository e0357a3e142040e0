"""Pieces of a convolution, as native functions know them, and threads that share them."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np

from tensorplug_cpu.execution.parallel import together
from tensorplug_cpu.jit.codegen.functions import lanes
from tensorplug_cpu.jit.loops import iteration_space
from tensorplug_cpu.jit.loops.calls import address, is_large
from tensorplug_cpu.jit.loops.products import Size, most_positions
from tensorplug_cpu.windows.sliding import room

_PIECE: Final = 1 << 17  # elements of a piece of the image: they stay in a second-level cache
_IMAGES: Final = 1 << 13  # elements of some images that make a piece: of a first-level cache
_PIECES: Final = 32  # at most, that threads share
_PRODUCTS: Final = 1 << 16  # multiplications of a piece, fewer of which are soon over
_MOVED: Final = 2  # multiplications that take as long as to move an element


def even(length: int, most: int) -> int:
    """Return the size of equal tiles, of which the last may overlap the one before."""
    return -(-length // -(-length // most))


def tile_size(dtype: np.dtype[Any], columns: int, length: int) -> Size:
    """Return the size of tiles of columns times something of ``length``."""
    width = lanes(dtype.itemsize, columns)
    count = -(-columns // width)
    vectors = min(count, 2 if length > 4 else 12 // length)
    positions = even(length, most_positions(vectors))
    masked = columns % (width * vectors) > 0
    return Size(width, vectors, positions, lower=length % positions > 0, masked=masked)


def make_grid(
    sweep: iteration_space.Sweep, batch: int, channels: int, products: int
) -> iteration_space.Grid:
    """Return the pieces of a sweep of so many multiplications."""
    least = max(1, min(_PIECES, products // _PRODUCTS))
    return iteration_space.Grid(sweep, batch, channels, (_PIECE, _IMAGES), least)


class Tables:
    """What native functions know of a grid: two addresses of tables, and sizes."""

    def __init__(self, grid: iteration_space.Grid, strides: list[int]) -> None:
        self._pieces = grid.table(strides)
        self._lines = grid.lines() if grid.padded else np.zeros(0, np.int64)
        self.pointers = address(self._pieces), address(self._lines)
        self.sizes = (grid.image, *grid.line)
        self.room = grid.room if grid.padded else 0


Call = tuple[Any, list[int], list[int]]  # native function, pointers but for the room, integers


def make_calls(calls: list[Call], elements: int, dtype: np.dtype[Any], work: int) -> None:
    """Make native calls, in several threads where there is much ``work``.

    All threads make all of the calls, and share the items of each by its counter, which is the
    function's last pointer. Its fourth one is the thread's own room for some ``elements``.
    """
    counters = (ctypes.c_int64 * len(calls))()
    begin, step = ctypes.addressof(counters), ctypes.sizeof(ctypes.c_int64)

    def make() -> None:
        own = room((elements,), dtype)
        scratch = address(own)
        for number, (function, pointers, integers) in enumerate(calls):
            counter = begin + number * step
            function(*pointers[:3], scratch, *pointers[3:], counter, *integers)

    if is_large(work // _MOVED):
        together(make)
    else:
        make()
