"""Sums, extrema and products of integers in one pass over memory, along rows or columns.

Sums of float32 are added up in float64. Those of float64 are added up in blocks with few
roundings, and the blocks with compensation (Knuth's exact sum of two numbers), so that the error
does not grow with the number of terms. The order of additions is the same on every processor and
for any number of threads.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu import parallel
from tensorplug_cpu.jit.folds import Fold, converts_halves, wide_dtype
from tensorplug_cpu.jit.loops import Function
from tensorplug_cpu.jit.settings import is_worthwhile
from tensorplug_cpu.memory_pool import allocator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_cpu.arrays import Array

    Value = Any  # of llvmlite
    Group = tuple[int, bool]  # length of neighbouring axes, and whether they are folded

__all__ = ["folder"]


_DTYPES: Final = frozenset(map(np.dtype, ("float16", "float32", "float64", *"?bhilqBHILQ")))
_UNROLLED: Final = 4  # vectors of a row at a time
_BLOCK: Final = {"float64": 8 * 4 * 8}  # terms of a row between two compensated additions
_LONG: Final = 1 << 12  # likewise where nothing is compensated
_WIDE: Final = 1 << 10  # columns whose accumulators stay in the first cache
_ROWS: Final = 8  # rows that are added to one another before they are added to the sum
_CHUNK: Final = 1 << 16  # terms of one part of a long sum
_FEW: Final = 64  # sums that are cut into parts if they are long
_LINE: Final = 64  # bytes of a line of the cache
_AHEAD: Final = 6 << 10  # bytes from what is read to what is asked for
_SHORT: Final = 32  # terms of a row up to which lanes are rows
_PARTS: Final = 8  # of a matrix whose columns are folded by threads
_GATHERED: Final = 4  # bytes of an element, from which processors read some far apart at once
_SHARED: Final = 1 << 24  # bytes from which threads are worth their hand-over


def folder(
    kind: str,
    merged: Sequence[Group],
    source: np.dtype[Any],
    result: np.dtype[Any],
    rest: Callable[[Array], Array],
) -> Callable[[Array], Array] | None:
    """Return what folds the last of the merged axes that is to be folded, the others by ``rest``.

    Args:
        kind: ``"sum"``, ``"max"``, ``"min"``, or ``"prod"`` of integers.
        merged: the axes, merged.
        source: the arrays' dtype.
        result: the result's: the same; for sums of float32 or float16 a wider one too; for sums
            of booleans int32.
        rest: folds the middle one of three axes.

    Returns:
        A function from arrays of any layout to arrays without the folded axes, with the other
        axes merged somehow; None where there is no such loop, or nothing worth it.

    """
    known = source.kind in "iu" if kind == "prod" else source in _DTYPES
    folded = [number for number, (_, folds) in enumerate(merged) if folds]
    if not known or not folded or not is_worthwhile(prod(length for length, _ in merged)):
        return None
    if source == np.float16 and not converts_halves():
        return None
    at = folded.pop()
    lengths = [length for length, _ in merged]
    shape = prod(lengths[:at]), lengths[at], prod(lengths[at + 1 :])
    wide = np.dtype(wide_dtype(kind, source.name))
    written = wide if folded or result == np.float16 else result
    first = (_by_rows if shape[2] == 1 else _by_columns)(kind, shape, source, written, wide, rest)
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


def _by_rows(
    kind: str,
    shape: Shape3,
    source: np.dtype[Any],
    result: np.dtype[Any],
    wide: np.dtype[Any],
    rest: Callable[[Array], Array],
) -> Callable[[Array], Array]:
    """Return what folds rows; few long ones in parts."""
    rows, length, _ = shape
    itemsize = source.itemsize
    shared = rows * length * itemsize >= _SHARED
    if rows > _FEW or length < 2 * _CHUNK:
        short = length <= _SHORT and rows >= _SHORT and itemsize >= _GATHERED
        find = _short_row_function if short else _row_function
        allocate = allocator((rows,), result)
        here, there = length * itemsize, result.itemsize

        def run(x: Array) -> Array:
            total = allocate()
            function = find(kind, source.name, result.name)
            at, to = _address(x), _address(total)
            parallel.in_parts(
                lambda start, stop: function(
                    at + start * here, to + start * there, stop - start, length
                ),
                rows,
                shared=shared,
            )
            return total

        return run
    parts = -(-length // _CHUNK)

    def run_in_parts(x: Array) -> Array:
        totals = np.empty((rows, parts, 1), wide)
        function = _row_function(kind, source.name, wide.name)
        at, to = _address(x), _address(totals)

        def work(start: int, stop: int) -> None:
            for part in range(start, stop):
                row, column = divmod(part, parts)
                first = column * _CHUNK
                place = at + (row * length + first) * itemsize
                count = min(_CHUNK, length - first)
                function(place, to + part * wide.itemsize, 1, count)

        parallel.in_parts(work, rows * parts, shared=shared)
        return rest(totals).reshape(rows).astype(result, copy=False)

    return run_in_parts


def _by_columns(
    kind: str,
    shape: Shape3,
    source: np.dtype[Any],
    result: np.dtype[Any],
    wide: np.dtype[Any],
    rest: Callable[[Array], Array],
) -> Callable[[Array], Array]:
    """Return what folds the middle one of three axes; many rows of a few columns in parts."""
    before, length, after = shape
    itemsize = source.itemsize
    shared = prod(shape) * itemsize >= _SHARED
    step = max(1, _CHUNK // after)
    tall = shared and length >= _PARTS * _ROWS
    if tall:  # parts of whole rows: a thread reads memory in order
        step = max(step, -(-length // _PARTS))
    if before == 1 and (after < _WIDE or tall) and length >= 2 * step:
        parts = -(-length // step)

        def run_in_parts(x: Array) -> Array:
            totals = np.empty((1, parts, after), wide)
            function = _column_function(kind, source.name, wide.name)
            at, to = _address(x), _address(totals)

            def work(start: int, stop: int) -> None:
                for part in range(start, stop):
                    first = part * step
                    place = at + first * after * itemsize
                    count = min(step, length - first)
                    function(place, to + part * after * wide.itemsize, 1, count, after, after)

            parallel.in_parts(work, parts, shared=shared)
            return rest(totals).astype(result, copy=False)

        return run_in_parts
    allocate = allocator((before, after), result)
    here, there = length * after * itemsize, after * result.itemsize

    def run(x: Array) -> Array:
        total = allocate()
        function = _column_function(kind, source.name, result.name)
        at, to = _address(x), _address(total)

        def work(start: int, stop: int) -> None:
            function(at + start * here, to + start * there, stop - start, length, after, after)

        def work_on_columns(start: int, stop: int) -> None:
            place, target = at + start * itemsize, to + start * result.itemsize
            function(place, target, before, length, stop - start, after)

        if before >= _ROWS:
            parallel.in_parts(work, before, shared=shared)
        else:
            parallel.in_parts(work_on_columns, after, shared=shared)
        return total

    return run


def _address(x: Array) -> int:
    address: int = x.__array_interface__["data"][0]
    return address


@cache
def _row_function(kind: str, source: str, result: str) -> Callable[..., None]:
    """Return the function that folds ``rows`` of ``length`` elements, side by side."""
    f = Function(f"rows_{kind}_{source}_{result}", source, ("x", "out"), ("rows", "length"))
    how = Fold(f, kind, source, result)
    block = _BLOCK[source] if how.compensated else _LONG
    step = _UNROLLED * how.count
    parts = [f.variable(how.identity) for _ in range(_UNROLLED)]
    total, error = f.variable(how.identity), f.variable(how.identity)
    with f.loop(0, f["rows"]) as row:
        begin = f.multiply(row, f["length"])
        total.set(how.identity)
        error.set(how.identity)
        with f.loop(0, f["length"], block) as start:
            stop = f.least(f.add(start, block), f["length"])
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
            one, two, three, four = (part.get() for part in parts)
            how.add(total, error, how.combine(how.combine(one, two), how.combine(three, four)))
        whole = how.across(how.corrected(total.get(), error.get()))
        f.store(how.rounded(whole), f["out"], row)
    return f.compiled()


@cache
def _short_row_function(kind: str, source: str, result: str) -> Callable[..., None]:
    """Return the same for rows so short that each lane of a vector takes one."""
    f = Function(f"short_{kind}_{source}_{result}", source, ("x", "out"), ("rows", "length"))
    how = Fold(f, kind, source, result)
    parts = [f.variable(how.identity) for _ in range(_UNROLLED)]
    with f.loop(0, f["rows"], how.count) as row:
        mask = f.mask(row, f["rows"], how.count)
        begin = f.multiply(row, f["length"])
        for part in parts:
            part.set(how.identity)

        def add(part: Any, column: Value) -> None:
            x = f.gather(mask, how.blank, f["x"], f.add(begin, column), f["length"])
            part.set(how.combine(part.get(), how.widened(x)))

        at = f.variable(0)
        last = f.add(f.subtract(f["length"], _UNROLLED), 1)
        with f.loop(0, last, _UNROLLED) as column:
            for number, part in enumerate(parts):
                add(part, f.add(column, number))
            at.set(f.add(column, _UNROLLED))
        with f.loop(at.get(), f["length"]) as column:
            add(parts[0], column)
        one, two, three, four = (part.get() for part in parts)
        total = how.combine(how.combine(one, two), how.combine(three, four))
        f.store_where(mask, how.rounded(total), f["out"], row)
    return f.compiled()


@cache
def _column_function(kind: str, source: str, result: str) -> Callable[..., None]:
    """Return the function that folds the rows of ``before`` matrices ``[length, stride]``.

    It takes ``width`` columns. Rows are read one after the other, and the accumulators of some
    thousand columns stay in the cache.
    """
    f = Function(
        f"columns_{kind}_{source}_{result}",
        source,
        ("x", "out"),
        ("before", "length", "width", "stride"),
    )
    how = Fold(f, kind, source, result)
    totals, errors = f.array(_WIDE, how.element), f.array(_WIDE, how.element)
    with f.loop(0, f["before"]) as matrix, f.loop(0, f["width"], _WIDE) as left:
        width = f.least(f.subtract(f["width"], left), _WIDE)
        begin = f.add(f.multiply(f.multiply(matrix, f["length"]), f["stride"]), left)
        with f.loop(0, width, how.count) as column:
            f.store(how.identity, totals, column)
            f.store(how.identity, errors, column)
        many = f.add(f.subtract(f["length"], _ROWS), 1)
        at = f.variable(0)
        for rows, stop in ((_ROWS, many), (1, f["length"])):
            with f.loop(at.get(), stop, rows) as row:
                here = f.add(begin, f.multiply(row, f["stride"]))
                _add_rows(f, how, (totals, errors), (here, rows, width))
                at.set(f.add(row, rows))
        place = f.add(f.multiply(matrix, f["stride"]), left)
        with f.loop(0, width, how.count) as column:
            total = f.load(totals, column, how.count, how.element)
            error = f.load(errors, column, how.count, how.element)
            mask = f.mask(column, width, how.count)
            whole = how.rounded(how.corrected(total, error))
            f.store_where(mask, whole, f["out"], f.add(place, column))
    return f.compiled()


def _add_rows(
    f: Function, how: Fold, sums: tuple[Value, Value], place: tuple[Value, int, Value]
) -> None:
    """Add some neighbouring rows, as a tree, to the accumulators of their columns."""
    begin, rows, width = place
    totals, errors = sums

    def at(column: Value, mask: Value = None) -> None:
        values = [
            how.read(f["x"], f.add(begin, f.multiply(row, f["stride"]), column), mask)
            for row in range(rows)
        ]
        while len(values) > 1:
            pairs = zip(values[::2], values[1::2], strict=True)
            values = [how.combine(a, b) for a, b in pairs]
        total = f.variable(f.load(totals, column, how.count, how.element))
        error = f.variable(how.identity)
        if how.compensated:
            error.set(f.load(errors, column, how.count, how.element))
        how.add(total, error, values[0])
        f.store(total.get(), totals, column)
        if how.compensated:
            f.store(error.get(), errors, column)

    rest = f.variable(0)
    with f.loop(0, f.add(f.subtract(width, how.count), 1), how.count) as column:
        at(column)
        rest.set(f.add(column, how.count))
    with f.when(f.less(rest.get(), width)):
        at(rest.get(), f.mask(rest.get(), width, how.count))
