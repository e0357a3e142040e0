"""The native loops of convolutions: products of windows, which are never copied, and filters.

A tile of the result stays in registers: some neighbouring positions times some vectors of columns.
Each step loads one row of the filter and one number of each position, and needs as many
multiplications as positions times vectors (Goto and van de Geijn 2008, "Anatomy of
high-performance matrix multiplication"; Georganas et al. 2018, "Anatomy of high-performance deep
learning convolutions on SIMD architectures").
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug_cpu.jit.codegen.compiler import MOST_FUNCTIONS
from tensorplug_cpu.jit.codegen.epilogues import apply_epilogue
from tensorplug_cpu.jit.codegen.functions import Function
from tensorplug_cpu.jit.codegen.processor import registers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug_cpu.jit.codegen.control_flow import Variable


class Size(NamedTuple):
    """A tile of a result: ``positions`` times ``vectors`` of ``lanes`` columns.

    ``lower``: some tiles have a position less, so that none computes what another one has.
    ``masked``: the last vectors of a row may reach beyond its columns.
    """

    lanes: int
    vectors: int
    positions: int
    lower: bool
    masked: bool


def most_positions(vectors: int) -> int:
    """Return how many positions a tile may have, so that no register is spilled."""
    return registers() * 3 // 4 // vectors


class Tile:
    """The sums of ``positions`` times the vectors of a tile while they are in registers."""

    def __init__(self, f: Function, size: Size, positions: int) -> None:
        self._f, self.lanes, self._vectors = f, size.lanes, size.vectors
        self._masked = size.masked
        self._zero = f.number(0.0, f.vector(size.lanes))
        self.sums = [
            [f.variable(self._zero) for _ in range(size.vectors)] for _ in range(positions)
        ]

    def clear(self) -> None:
        """Set the sums to zero."""
        for row in self.sums:
            for one in row:
                one.set(self._zero)

    def add(self, columns: list[Any], numbers: Callable[[int], Any]) -> None:
        """Add the product of a column of numbers, one per position, with a row of vectors."""
        for position, row in enumerate(self.sums):
            number = self._f.spread(numbers(position), self.lanes)
            for one, column in zip(row, columns, strict=True):
                one.set(self._f.multiply_add(number, column, one.get()))

    def results(
        self, target: Any, apart: Any, done: Any = 0
    ) -> Iterator[tuple[int, Variable, Any]]:
        """Yield each sum of the positions from ``done`` on: number of the vector, sum, offset.

        ``target``: the offset of the first position; others are ``apart``.
        """
        f = self._f
        for position, row in enumerate(self.sums):
            with f.when(f.less(done, position + 1)):
                to = f.add(target, f.multiply(apart, position))
                for at, one in enumerate(row):
                    yield at, one, f.add(to, at * self.lanes)

    def masks(self, first: Any, stop: Any) -> list[Any]:
        """Return which lanes of each vector are columns below ``stop``; None for all."""
        f, lanes = self._f, self.lanes
        if not self._masked:
            return [None] * self._vectors
        return [f.mask(f.add(first, at * lanes), stop, lanes) for at in range(self._vectors)]

    def load(self, mask: Any, pointer: Any, offset: Any) -> Any:
        """Return a vector, which is 0 where ``mask`` does not hold."""
        if mask is None:
            return self._f.load(pointer, offset, self.lanes)
        return self._f.load_where(mask, self._zero, pointer, offset)

    def store(self, mask: Any, value: Any, pointer: Any, offset: Any) -> None:
        """Write a vector where ``mask`` holds."""
        if mask is None:
            self._f.store(value, pointer, offset)
        else:
            self._f.store_where(mask, value, pointer, offset)


def _tiles(f: Function, size: Size, length: Any) -> Iterator[tuple[Tile, Any]]:
    """Yield the tiles of ``length`` positions, and where one begins, in the loop over them."""
    positions, end = size.positions, length
    if size.lower:
        whole = f.add(length, positions - 1)
        count = f.builder.sdiv(whole, f.number(positions))
        tall = f.subtract(length, f.multiply(count, positions - 1))
        end = f.multiply(tall, positions)
    with f.loop(0, end, positions) as start:
        yield Tile(f, size, positions), start
    if size.lower:
        with f.loop(end, length, positions - 1) as start:
            yield Tile(f, size, positions - 1), start


_PIECE: Final = ("source", "pieces", "lines", "room")
_SIZES: Final = ("image", "before", "size", "line")  # of an image, of a line (``sweeps.Grid``)


class _Piece:
    """A row of the table of pieces; ``source``: where what it reads begins."""

    def __init__(self, f: Function, number: Any, lanes: int, *, padded: bool) -> None:
        start, self.target, self.rows, *counts = _entries(f, f["pieces"], number, 6)
        self.source = f.pointer_to(f["source"], start)
        if padded:
            _copy_lines(f, self.source, counts, lanes)
            self.source = f["room"]


def _copy_lines(f: Function, source: Any, counts: list[Any], lanes: int) -> None:
    """Copy the lines of some images, with their padding, to this thread's room."""
    images, first, lines = counts
    zero = f.number(0.0, f.vector(lanes))

    def fill(target: Any, count: Any, offset: Any = None) -> None:
        with f.loop(0, count, lanes) as at:
            mask = f.mask(at, count, lanes)
            value = zero
            if offset is not None:
                value = f.load_where(mask, zero, source, f.add(offset, at))
            f.store_where(mask, value, f["room"], f.add(target, at))

    with f.loop(0, images) as image, f.loop(0, lines) as line:
        offset = f.whole(f["lines"], f.add(first, line))
        known = f.less(-1, offset)
        before, size = (f.builder.select(known, f[name], f.number(0)) for name in _SIZES[1:3])
        target = f.multiply(f.add(f.multiply(image, lines), line), f["line"])
        fill(target, before)
        fill(f.add(target, before), size, f.add(f.multiply(image, f["image"]), offset))
        fill(f.add(target, before, size), f.subtract(f["line"], f.add(before, size)))


@lru_cache(MOST_FUNCTIONS)
def sweep_function(
    dtype: str,
    size: Size,
    step: int,
    run_length: int,
    epilogue: str,
    *,
    padded: bool,
    bias: bool,
) -> Any:
    """Return the function that computes pieces of a sweep, as a thread gets them.

    Its pointers: the source; the tables of pieces and lines (``sweeps.Grid``); room for lines;
    the filter in panels of ``vectors * lanes`` columns, each with all rows; the result; a number
    per column to add, and one to multiply negative sums with; where each row begins in the
    piece's source, and in the result; the runs of neighbouring elements under a window (offset,
    length); the blocks of runs whose sums are added one after the other (first run, last run,
    first row of the filter); the counter of pieces. Its integers: the sizes of ``sweeps.Grid``;
    the number of pieces, of positions in each row, of elements between positions of the result, of
    columns, of rows of the filter, of blocks.

    ``size``: of tiles that a row can be cut into. ``step``: the elements of the source between
    positions. ``run_length``: of every run; 0 for any.
    """
    lanes, vectors = size.lanes, size.vectors
    f = Function(
        "sweep",
        dtype,
        (
            *_PIECE,
            *("filter", "result", "bias", "slope", "reads", "writes", "runs", "blocks"),
            "counter",
        ),
        (*_SIZES, "pieces_count", "width", "apart", "columns", "length", "count"),
    )
    panel = vectors * lanes
    columns = f["columns"]
    weight = f.variable(0)
    with f.taken(f["pieces_count"]) as number:
        piece = _Piece(f, number, lanes, padded=padded)

        def add(tile: Tile, here: Any) -> None:
            row_of_panel = [
                f.load(f["filter"], f.add(weight.get(), at * lanes), lanes)
                for at in range(vectors)
            ]
            tile.add(row_of_panel, partial(_after, f, piece.source, here, step))
            weight.set(f.add(weight.get(), panel))

        with f.loop(0, columns, panel) as first, f.loop(0, f["count"]) as block:
            from_run, to_run, row_of_filter = _entries(f, f["blocks"], block, 3)
            weights = f.add(f.multiply(first, f["length"]), f.multiply(row_of_filter, panel))
            with f.loop(0, piece.rows) as row:
                for tile, start in _tiles(f, size, f["width"]):
                    masks = tile.masks(first, columns)
                    source = f.add(f.whole(f["reads"], row), f.multiply(start, step))
                    tile.clear()
                    weight.set(weights)
                    with f.loop(from_run, to_run) as run:
                        offset, length = _entries(f, f["runs"], run, 2)
                        begin = f.add(source, offset)
                        if run_length:
                            for inner in range(run_length):
                                add(tile, f.add(begin, inner))
                        else:
                            with f.loop(0, length) as inner:
                                add(tile, f.add(begin, inner))
                    target = f.add(piece.target, f.whole(f["writes"], row), first)
                    target = f.add(target, f.multiply(start, f["apart"]))
                    for at, one, here in tile.results(target, f["apart"]):
                        with f.when(f.less(0, block)):
                            earlier = tile.load(masks[at], f["result"], here)
                            one.set(f.builder.fadd(one.get(), earlier))
                        with f.when(f.less(f.subtract(f["count"], 2), block)):
                            column = f.add(first, at * lanes)
                            numbers = [
                                tile.load(masks[at], f[name], column) if used else None
                                for name, used in (("bias", bias), ("slope", epilogue == "slope"))
                            ]
                            one.set(apply_epilogue(f, one.get(), epilogue, *numbers))
                        tile.store(masks[at], one.get(), f["result"], here)
    return f.compiled()


@lru_cache(MOST_FUNCTIONS)
def filter_function(dtype: str, size: Size, *, padded: bool, run_length: int) -> Any:
    """Return the function that adds the gradient of a filter over pieces of a sweep.

    A thread gets *items*: some pieces, some runs of neighbouring elements under a window, and the
    gradient to which their products are added. Its pointers: the first four of
    ``sweep_function``; dy; the gradients [taps * channels, columns]; where each row begins in the
    piece's source, and in dy; the items (first piece, last, first run, last, offset of the
    gradient); the runs (offset, first row of the gradient, length); the offset of each row of the
    gradient under a window; the counter of items. Its integers: the sizes of ``sweeps.Grid``; the
    number of items, of rows of a piece whose sum is added at once, of positions in a row, of
    elements between positions of the source, of columns.

    ``size``: of a tile, with elements of a run as positions; a run has as many at least.
    ``run_length``: if it is not 0, each so many elements are neighbours, and the table has one
    entry for all of them.
    """
    lanes, vectors, positions = size[:3]
    f = Function(
        "filter_gradient",
        dtype,
        (
            *_PIECE,
            *("dy", "result", "reads", "upstream", "items", "runs", "offsets"),
            "counter",
        ),
        (*_SIZES, "count", "group", "width", "step", "columns"),
    )
    columns = f["columns"]
    tile = Tile(f, size, positions)
    with f.taken(f["count"]) as number:
        first_piece, last_piece, from_run, to_run, gradient = _entries(f, f["items"], number, 5)
        with f.loop(first_piece, last_piece) as at_piece:
            piece = _Piece(f, at_piece, lanes, padded=padded)
            with (
                f.loop(0, piece.rows, f["group"]) as first_row,
                f.loop(0, columns, vectors * lanes) as first,
                f.loop(from_run, to_run) as run,
            ):
                masks = tile.masks(first, columns)
                last_row = f.least(f.add(first_row, f["group"]), piece.rows)
                offset, row_of_filter, length = _entries(f, f["runs"], run, 3)
                with f.loop(0, length, positions) as tile_start:
                    start = f.least(tile_start, f.subtract(length, positions))
                    done = f.subtract(tile_start, start)  # elements that the tile before has added
                    target = f.add(row_of_filter, start)
                    begin, offsets = f.add(offset, start), list(range(positions))
                    if run_length:
                        begin, offsets = f.number(0), []
                        for first_of_run in range(0, positions, run_length):
                            shift = f.whole(f["offsets"], f.add(target, first_of_run))
                            offsets += [f.add(shift, at) for at in range(run_length)]
                    tile.clear()
                    with f.loop(first_row, last_row) as row:
                        source = f.variable(f.add(f.whole(f["reads"], row), begin))
                        dy_row = f.add(piece.target, f.whole(f["upstream"], row), first)
                        upstream = f.variable(dy_row)
                        with f.loop(0, f["width"]):
                            here, there = source.get(), upstream.get()
                            vectors_of_dy = [
                                tile.load(mask, f["dy"], f.add(there, at * lanes))
                                for at, mask in enumerate(masks)
                            ]
                            offsets_of_x = [f.add(here, offset) for offset in offsets]
                            tile.add(vectors_of_dy, partial(_at, f, piece.source, offsets_of_x))
                            source.set(f.add(here, f["step"]))
                            upstream.set(f.add(there, columns))
                    target = f.add(gradient, f.multiply(target, columns), first)
                    for at, one, here in tile.results(target, columns, done):
                        total = f.builder.fadd(one.get(), tile.load(masks[at], f["result"], here))
                        tile.store(masks[at], total, f["result"], here)
    return f.compiled()


def _after(f: Function, pointer: Any, start: Any, step: int, position: int) -> Any:
    return f.load(pointer, f.add(start, position * step))


def _at(f: Function, pointer: Any, offsets: list[Any], position: int) -> Any:
    return f.load(pointer, offsets[position])


def _entries(f: Function, table: Any, row: Any, count: int) -> list[Any]:
    """Return a row of a table of ``count`` columns."""
    first = f.multiply(row, count)
    return [f.whole(table, f.add(first, at)) for at in range(count)]
