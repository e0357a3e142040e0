"""Sums of floats in one pass over memory, along rows or columns.

Those of float32 are added up in float64. Those of float64 are added up in blocks with few
roundings, and the blocks with compensation (Knuth's exact sum of two numbers), so that the error
does not grow with the number of terms. The order of additions is the same on every processor and
for any number of threads.

Other reductions are taken by their forms, which compensate nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorplug_cpu.jit.codegen.folds import Fold, wide_dtype
from tensorplug_cpu.jit.codegen.functions import Function
from tensorplug_cpu.jit.codegen.processor import converts_halves
from tensorplug_cpu.jit.codegen.settings import is_worthwhile
from tensorplug_cpu.jit.loops.calls import address, launch
from tensorplug_cpu.memory.pool import allocator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tensorplug_cpu.arrays import Array

    Value = Any  # of llvmlite
    Group = tuple[int, bool]  # length of neighbouring axes, and whether they are folded


_DTYPES: Final = frozenset(map(np.dtype, ("float16", "float32", "float64")))
_UNROLLED: Final = 4  # vectors of a row at a time
_BLOCK: Final = {"float64": 8 * 4 * 8}  # terms of a row between two compensated additions
_LONG: Final = 1 << 12  # likewise where nothing is compensated
_WIDE: Final = 1 << 12  # columns whose accumulators stay in the cache
_ROWS: Final = 8  # rows that are added to one another before they are added to the sum
_CHUNK: Final = 1 << 16  # terms of one part of a long sum, and elements that a thread takes
_FEW: Final = 64  # sums that are cut into parts if they are long
_LINE: Final = 64  # bytes of a line of the cache
_AHEAD: Final = 8 << 10  # bytes from what is read to what is asked for
_NEAR: Final = 1 << 10  # likewise, where some rows are read side by side
_SHORT: Final = 32  # terms of a row up to which lanes are rows
_NARROW: Final = 1 << 10  # columns up to which parts of many rows are folded apart
_LARGE: Final = 1 << 23  # bytes of a matrix from which threads share its columns
_PARTS: Final = 8  # of whole rows of such a matrix
_STRETCH: Final = 512  # columns side by side that a thread takes at least
_GATHERED: Final = 4  # bytes of an element, from which processors read some far apart at once
_SHARED: Final = 1 << 22  # bytes from which threads are worth their hand-over


def folder(
    merged: Sequence[Group],
    source: np.dtype[Any],
    result: np.dtype[Any],
    rest: Callable[[Array], Array],
) -> Callable[[Array], Array] | None:
    """Return what sums along the last of the merged axes that is to be folded, then by ``rest``.

    Args:
        merged: the axes, merged.
        source: the arrays' dtype.
        result: the result's: the same; for float32 or float16 a wider one too.
        rest: sums along the middle one of three axes.

    Returns:
        A function from arrays of any layout to arrays without the folded axes, with the other
        axes merged somehow; None where there is no such loop, or nothing worth it.

    """
    folded = [number for number, (_, folds) in enumerate(merged) if folds]
    lengths = [length for length, _ in merged]
    if source not in _DTYPES or not folded or not is_worthwhile(prod(lengths)):
        return None
    if source == np.float16 and not converts_halves():
        return None
    at = folded.pop()
    shape = prod(lengths[:at]), lengths[at], prod(lengths[at + 1 :])
    wide = np.dtype(wide_dtype(source.name))
    written = wide if folded or result == np.float16 else result
    first = _middle(shape, source, written)
    del lengths[at]
    later = []
    for number in reversed(folded):
        later.append((prod(lengths[:number]), lengths[number], prod(lengths[number + 1 :])))
        del lengths[number]

    def run(x: Array) -> Array:
        total = first(np.ascontiguousarray(x))
        for groups in later:
            total = rest(total.reshape(groups))
        return total.astype(result, copy=False)

    return run


Shape3 = tuple[int, int, int]


class _Cut(NamedTuple):
    """How the middle one of three axes is folded in parts, and what a thread takes at once.

    Attributes:
        parts: how many sums there are for each result.
        terms: of a part; the last may have fewer.
        grain: how many rows of the first axis are taken at once.
        blocks: into how many blocks the last axis is cut.
        width: columns of the last axis in a block; the last may have fewer.

    """

    parts: int
    terms: int
    grain: int
    blocks: int
    width: int


def _cut(shape: Shape3, itemsize: int) -> _Cut:
    """Cut rows where few are long, many rows of few columns, and large matrices."""
    before, length, after = shape
    terms = max(1, _CHUNK // after)
    large = prod(shape) * itemsize >= _LARGE
    tall = after > 1 and large and length >= _PARTS * _ROWS
    if tall:  # parts of whole rows: a thread reads memory in order
        terms = max(terms, -(-length // _PARTS))
    few = before <= _FEW if after == 1 else before == 1 and (after < _NARROW or tall)
    if few and length >= 2 * terms:
        return _Cut(-(-length // terms), terms, 1, 1, after)
    grain = max(1, _CHUNK // (length * after))
    if after == 1:
        grain = -(-grain // _LINE) * _LINE  # so that no vector of rows is cut
    width = after
    if large and before < _ROWS:
        width = max(_STRETCH, -(-after // (_ROWS * _LINE)) * _LINE)
    return _Cut(1, length, grain, -(-after // width), width)


def _middle(
    shape: Shape3, source: np.dtype[Any], result: np.dtype[Any]
) -> Callable[[Array], Array]:
    """Return what folds the middle one of three axes, and then the results of its parts."""
    before, length, after = shape
    cut = _cut(shape, source.itemsize)
    whole = cut.parts == 1
    written = result if whole else np.dtype(wide_dtype(source.name))
    rest = None if whole else _middle((before, cut.parts, after), written, result)
    short = whole and length <= _SHORT <= before and source.itemsize >= _GATHERED
    find = _column_function if after > 1 else _short_row_function if short else _row_function
    allocate = allocator((before, cut.parts, after), written)
    count = -(-before // cut.grain) * cut.parts * cut.blocks
    integers = (count, *shape, *cut)
    shared = count > 1 and prod(shape) * source.itemsize >= _SHARED
    names = source.name, written.name  # which NumPy takes microseconds to tell

    def run(x: Array) -> Array:
        total = allocate()
        function = find(*names)
        launch(function, (address(x), address(total)), integers, shared=shared)
        return total if rest is None else rest(total)

    return run


_POINTERS: Final = ("x", "out", "counter")
_INTEGERS: Final = ("count", "before", "length", "after", *_Cut._fields)


class _Part(NamedTuple):
    """A part of a sum, or of neighbouring ones: offsets of source and result, terms, columns.

    ``row``: the index on the first axis, which ends at ``stop`` for this thread.
    """

    source: Value
    target: Value
    terms: Value
    columns: Value
    row: Value
    stop: Value


@contextmanager
def _each_part(f: Function, together: int = 1) -> Iterator[_Part]:
    """Run the block for each part that this thread takes, or some neighbours ``together``."""
    build, length, after = f.builder, f["length"], f["after"]
    with f.taken(f["count"]) as number:
        rest, block = build.udiv(number, f["blocks"]), build.urem(number, f["blocks"])
        group, part = build.udiv(rest, f["parts"]), build.urem(rest, f["parts"])
        first = f.multiply(group, f["grain"])
        stop = f.least(f.add(first, f["grain"]), f["before"])
        start = f.multiply(part, f["terms"])
        left = f.multiply(block, f["width"])
        terms = f.least(f.subtract(length, start), f["terms"])
        columns = f.least(f.subtract(after, left), f["width"])
        with f.loop(first, stop, together) as row:
            source = f.multiply(f.add(f.multiply(row, length), start), after)
            target = f.multiply(f.add(f.multiply(row, f["parts"]), part), after)
            yield _Part(f.add(source, left), f.add(target, left), terms, columns, row, stop)


@cache
def _row_function(source: str, result: str) -> Callable[..., None]:
    """Return the function that folds parts of rows."""
    f = Function(f"rows_{source}_{result}", source, _POINTERS, _INTEGERS)
    how = Fold(f, "sum", source, result)
    block = _BLOCK[source] if how.compensated else _LONG
    step = _UNROLLED * how.count
    parts = [f.variable(how.identity) for _ in range(_UNROLLED)]
    total, error = f.variable(how.identity), f.variable(how.identity)
    with _each_part(f) as row:
        begin = row.source
        total.set(how.identity)
        error.set(how.identity)
        with f.loop(0, row.terms, block) as start:
            stop = f.least(f.add(start, block), row.terms)
            for part in parts:
                part.set(how.identity)
            at = f.variable(start)
            last = f.add(f.subtract(stop, step), 1)
            with f.loop(start, last, step) as first:
                for line in range(0, step, _LINE // f.itemsize):
                    f.prefetch(f["x"], f.add(begin, first, line + _AHEAD // f.itemsize))
                for number, part in enumerate(parts):
                    offset = f.add(begin, first, number * how.count)
                    part.set(how.combine(part.get(), how.read(f["x"], offset)))
                at.set(f.add(first, step))
            with f.loop(at.get(), stop, how.count) as first:
                mask = f.mask(first, stop, how.count)
                x = how.read(f["x"], f.add(begin, first), mask)
                parts[0].set(how.combine(parts[0].get(), x))
            how.add(total, error, how.together([part.get() for part in parts]))
        whole = how.across(how.corrected(total.get(), error.get()))
        f.store(how.rounded(whole), f["out"], row.target)
    return f.compiled()


@cache
def _short_row_function(source: str, result: str) -> Callable[..., None]:
    """Return the same for rows so short that each lane of a vector takes one."""
    f = Function(f"short_{source}_{result}", source, _POINTERS, _INTEGERS)
    how = Fold(f, "sum", source, result)
    parts = [f.variable(how.identity) for _ in range(_UNROLLED)]
    with _each_part(f, how.count) as rows:
        mask = f.mask(rows.row, rows.stop, how.count)
        for part in parts:
            part.set(how.identity)

        def add(part: Any, column: Value) -> None:
            x = f.gather(mask, how.blank, f["x"], f.add(rows.source, column), f["length"])
            part.set(how.combine(part.get(), how.widened(x)))

        at = f.variable(0)
        last = f.add(f.subtract(f["length"], _UNROLLED), 1)
        with f.loop(0, last, _UNROLLED) as column:
            for number, part in enumerate(parts):
                add(part, f.add(column, number))
            at.set(f.add(column, _UNROLLED))
        with f.loop(at.get(), f["length"]) as column:
            add(parts[0], column)
        total = how.together([part.get() for part in parts])
        f.store_where(mask, how.rounded(total), f["out"], rows.target)
    return f.compiled()


@cache
def _column_function(source: str, result: str) -> Callable[..., None]:
    """Return the function that folds the columns of parts of matrices.

    Rows are read one after the other, and the accumulators of some thousand columns stay in the
    cache.
    """
    f = Function(f"columns_{source}_{result}", source, _POINTERS, _INTEGERS)
    how = Fold(f, "sum", source, result)
    totals, errors = f.array(_WIDE, how.element), f.array(_WIDE, how.element)
    with _each_part(f) as part, f.loop(0, part.columns, _WIDE) as left:
        width = f.least(f.subtract(part.columns, left), _WIDE)
        begin = f.add(part.source, left)
        with f.loop(0, width, how.count) as column:
            f.store(how.identity, totals, column)
            f.store(how.identity, errors, column)
        many = f.add(f.subtract(part.terms, _ROWS), 1)
        at = f.variable(0)
        for rows, stop in ((_ROWS, many), (1, part.terms)):
            with f.loop(at.get(), stop, rows) as row:
                here = f.add(begin, f.multiply(row, f["after"]))
                _add_rows(f, how, (totals, errors), (here, rows, width))
                at.set(f.add(row, rows))
        offset = f.add(part.target, left)
        with f.loop(0, width, how.count) as column:
            total = f.load(totals, column, how.count, how.element)
            error = f.load(errors, column, how.count, how.element)
            mask = f.mask(column, width, how.count)
            whole = how.rounded(how.corrected(total, error))
            f.store_where(mask, whole, f["out"], f.add(offset, column))
    return f.compiled()


def _add_rows(
    f: Function, how: Fold, sums: tuple[Value, Value], block: tuple[Value, int, Value]
) -> None:
    """Add some neighbouring rows, as a tree, to the accumulators of their columns."""
    begin, rows, width = block
    totals, errors = sums

    def at(column: Value, mask: Value = None) -> None:
        values = [
            how.read(f["x"], f.add(begin, f.multiply(row, f["after"]), column), mask)
            for row in range(rows)
        ]
        total = f.variable(f.load(totals, column, how.count, how.element))
        error = f.variable(how.identity)
        if how.compensated:
            error.set(f.load(errors, column, how.count, how.element))
        how.add(total, error, how.together(values))
        f.store(total.get(), totals, column)
        if how.compensated:
            f.store(error.get(), errors, column)

    line, rest = _LINE // f.itemsize, f.variable(0)
    for step in sorted({line, how.count}, reverse=True):
        with f.loop(rest.get(), f.add(f.subtract(width, step), 1), step) as column:
            if step == line:
                for row in range(rows):
                    here = f.add(begin, f.multiply(row, f["after"]), column)
                    f.prefetch(f["x"], f.add(here, _NEAR // f.itemsize))
            for offset in range(0, step, how.count):
                at(f.add(column, offset))
            rest.set(f.add(column, step))
    with f.when(f.less(rest.get(), width)):
        at(rest.get(), f.mask(rest.get(), width, how.count))
