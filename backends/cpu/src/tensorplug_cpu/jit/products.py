"""The native loops of convolutions: products of windows, which are never copied, and filters.

A tile of the result stays in registers: some neighbouring places times some vectors of columns.
Each step loads one row of the filter and one number of each place, and needs as many
multiplications as places times vectors (Goto and van de Geijn 2008, "Anatomy of high-performance
matrix multiplication"; Georganas et al. 2018, "Anatomy of high-performance deep learning
convolutions on SIMD architectures").
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

from tensorplug_cpu.jit.endings import ended
from tensorplug_cpu.jit.loops import Function
from tensorplug_cpu.jit.processor import vector_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["filter_function", "most_places", "sweep_function"]


def most_places(vectors: int) -> int:
    """Return how many places a tile may have, so that no register is spilled."""
    registers = 32 if vector_bytes() == 64 else 16
    return registers * 3 // 4 // vectors


class _Tile:
    """The sums of ``places`` times ``vectors`` while they are in registers."""

    def __init__(self, f: Function, lanes: int, vectors: int, places: int) -> None:
        self._f, self._lanes, self._vectors = f, lanes, vectors
        zero = f.number(0.0, f.vector(lanes))
        self.sums = [[f.variable(zero) for _ in range(vectors)] for _ in range(places)]

    def clear(self) -> None:
        zero = self._f.number(0.0, self._f.vector(self._lanes))
        for row in self.sums:
            for one in row:
                one.set(zero)

    def add(self, columns: list[Any], numbers: Callable[[int], Any]) -> None:
        """Add the product of a column of numbers, one per place, with a row of vectors."""
        for place, row in enumerate(self.sums):
            number = self._f.spread(numbers(place), self._lanes)
            for one, column in zip(row, columns, strict=True):
                one.set(self._f.multiply_add(number, column, one.get()))

    def masks(self, first: Any, stop: Any) -> list[Any]:
        """Return which lanes of each vector are columns below ``stop``."""
        f, lanes = self._f, self._lanes
        return [f.mask(f.add(first, at * lanes), stop, lanes) for at in range(self._vectors)]


@cache
def sweep_function(
    dtype: str, lanes: int, vectors: int, places: int, step: int, ending: str, *, bias: bool
) -> Any:
    """Return the function that computes rows of a sweep.

    Its pointers: the source; the filter in panels of ``vectors * lanes`` columns, each with all
    rows; the result; a number per column to add, and one to multiply negative sums with; where
    each row begins in the source, and in the result; the runs of neighbouring elements under a
    window (offset, length); the blocks of runs whose sums are added one after the other (first
    run, last run, first row of the filter). Its integers: the number of rows, of places in each,
    of elements between places of the result, of columns, of rows of the filter, of blocks.

    ``step``: the elements of the source between places, which have ``places`` at least.
    """
    f = Function(
        "sweep",
        dtype,
        ("source", "filter", "result", "bias", "slope", "reads", "writes", "runs", "blocks"),
        ("rows", "width", "apart", "columns", "length", "count"),
    )
    panel = vectors * lanes
    columns, runs = f["columns"], f["runs"]
    tile = _Tile(f, lanes, vectors, places)
    weight = f.variable(0)
    zero = f.number(0.0, f.vector(lanes))
    with f.loop(0, columns, panel) as first, f.loop(0, f["count"]) as block:
        masks = tile.masks(first, columns)
        from_run, to_run, row_of_filter = _triple(f, f["blocks"], block)
        weights = f.add(f.multiply(first, f["length"]), f.multiply(row_of_filter, panel))
        with f.loop(0, f["rows"]) as row, f.loop(0, f["width"], places) as wanted:
            start = f.least(wanted, f.subtract(f["width"], places))
            done = f.subtract(wanted, start)  # places that the tile before has computed
            source = f.add(f.whole(f["reads"], row), f.multiply(start, step))
            tile.clear()
            weight.set(weights)
            with f.loop(from_run, to_run) as run:
                entry = f.multiply(run, 2)
                offset, length = f.whole(runs, entry), f.whole(runs, f.add(entry, 1))
                with f.loop(0, length) as inner:
                    row_of_panel = [
                        f.load(f["filter"], f.add(weight.get(), at * lanes), lanes)
                        for at in range(vectors)
                    ]
                    here = f.add(source, offset, inner)
                    tile.add(row_of_panel, partial(_after, f, f["source"], here, step))
                    weight.set(f.add(weight.get(), panel))
            target = f.add(f.whole(f["writes"], row), first, f.multiply(start, f["apart"]))
            for place, sums in enumerate(tile.sums):
                with f.when(f.less(done, place + 1)):
                    to = f.add(target, f.multiply(f["apart"], place))
                    for at, (one, mask) in enumerate(zip(sums, masks, strict=True)):
                        here = f.add(to, at * lanes)
                        with f.when(f.less(0, block)):
                            earlier = f.load_where(mask, zero, f["result"], here)
                            one.set(f.builder.fadd(one.get(), earlier))
                        with f.when(f.less(f.subtract(f["count"], 2), block)):
                            column = f.add(first, at * lanes)
                            numbers = [
                                f.load_where(mask, zero, f[name], column) if used else None
                                for name, used in (("bias", bias), ("slope", ending == "slope"))
                            ]
                            one.set(ended(f, one.get(), ending, *numbers))
                        f.store_where(mask, one.get(), f["result"], here)
    return f.compiled()


@cache
def filter_function(dtype: str, lanes: int, vectors: int, places: int) -> Any:
    """Return the function that adds the gradient of a filter over rows of a sweep.

    Its pointers: the source; dy; the gradient [taps * channels, columns], to which is added;
    where each row begins in the source, and in dy; the runs of neighbouring elements under a
    window (offset, first row of the gradient, length). Its integers: the number of rows, and of
    those whose sum is added at once; the number of places in a row, of elements between places
    of the source, of columns; the first run and the last.

    A run has ``places`` elements at least.
    """
    f = Function(
        "filter_gradient",
        dtype,
        ("source", "dy", "result", "reads", "upstream", "runs"),
        ("rows", "group", "width", "step", "columns", "from_run", "to_run"),
    )
    columns, step = f["columns"], f["step"]
    tile = _Tile(f, lanes, vectors, places)
    zero = f.number(0.0, f.vector(lanes))
    with (
        f.loop(0, f["rows"], f["group"]) as first_row,
        f.loop(0, columns, vectors * lanes) as first,
        f.loop(f["from_run"], f["to_run"]) as run,
    ):
        masks = tile.masks(first, columns)
        last_row = f.least(f.add(first_row, f["group"]), f["rows"])
        offset, row_of_filter, length = _triple(f, f["runs"], run)
        with f.loop(0, length, places) as wanted:
            start = f.least(wanted, f.subtract(length, places))
            done = f.subtract(wanted, start)  # places that the tile before has added
            tile.clear()
            with f.loop(first_row, last_row) as row:
                source = f.variable(f.add(f.whole(f["reads"], row), offset, start))
                upstream = f.variable(f.add(f.whole(f["upstream"], row), first))
                with f.loop(0, f["width"]):
                    here, there = source.get(), upstream.get()
                    vectors_of_dy = [
                        f.load_where(mask, zero, f["dy"], f.add(there, at * lanes))
                        for at, mask in enumerate(masks)
                    ]
                    tile.add(vectors_of_dy, partial(_after, f, f["source"], here, 1))
                    source.set(f.add(here, step))
                    upstream.set(f.add(there, columns))
            target = f.add(row_of_filter, start)
            for place, sums in enumerate(tile.sums):
                with f.when(f.less(done, place + 1)):
                    to = f.add(f.multiply(f.add(target, place), columns), first)
                    for at, (one, mask) in enumerate(zip(sums, masks, strict=True)):
                        here = f.add(to, at * lanes)
                        earlier = f.load_where(mask, zero, f["result"], here)
                        total = f.builder.fadd(one.get(), earlier)
                        f.store_where(mask, total, f["result"], here)
    return f.compiled()


def _after(f: Function, pointer: Any, start: Any, step: int, place: int) -> Any:
    return f.load(pointer, f.add(start, place * step))


def _triple(f: Function, table: Any, row: Any) -> list[Any]:
    first = f.multiply(row, 3)
    return [f.whole(table, f.add(first, at)) for at in range(3)]
