"""Reading rows at indices, one row after the other.

Indices are checked while they are read. A row that lies elsewhere takes long to arrive, so it is
asked for some rows ahead.

By hand, for the forms check no index; they took 0.9 to 1.1 times as long, and where NumPy checks
the indices before, 1.3 to 2.3 times for rows of one or two elements.
"""

from __future__ import annotations

from functools import cache, partial
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu.execution import parallel
from tensorplug_cpu.jit.codegen.functions import Function
from tensorplug_cpu.jit.codegen.settings import is_worthwhile
from tensorplug_cpu.jit.loops.addresses import address
from tensorplug_cpu.memory.pool import allocator

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array

    Value = Any  # of llvmlite


_SHARED: Final = 1 << 22  # bytes from which threads are worth their hand-over
_BYTES: Final = 64  # of a vector, and of a line of the cache
_AHEAD: Final = 8  # rows from what is copied to what is asked for
_LINES: Final = 2  # of the cache, of that row: the processor asks for more by itself
_INDICES: Final = 8  # at a time, for single elements
_ELEMENTS: Final = (1, 2, 4, 8)  # bytes of a row that is one element
_FIXED: Final = (*_ELEMENTS, 16, 32, 64)  # bytes of a row that is copied at once


def gatherer(
    shape: tuple[int, int, int, int],
    count: int,
    dtype: np.dtype[Any],
    index: np.dtype[Any],
) -> Callable[[Array, Array], Array | None] | None:
    """Return what takes ``out[b, o, i] = x[b, o, indices[b, i]]``; None where a loop is no help.

    Args:
        shape: of x, ``[batch, before, length, after]``.
        count: of the indices of each batch.
        dtype: of x.
        index: of the indices, an integer one; negative ones count from the end.

    Returns:
        A function of x and indices of any layout. It returns ``[batch, before, count, after]``, or
        None if an index is out of range.

    """
    batch, before, length, after = shape
    result = (batch, before, count, after)
    nbytes = prod(result) * dtype.itemsize
    fixed = dtype.kind in "biufc" and dtype.itemsize <= 8
    if not fixed or index.itemsize < 4 or not length or not is_worthwhile(prod(result)):
        return None
    rows = batch * before
    # A row of few bytes is one element, or one vector.
    width = after * dtype.itemsize
    itemsize = width if width in _ELEMENTS else next(n for n in (4, 2, 1) if width % n == 0)
    units = width // itemsize
    fixed_units = units if width in _FIXED else 0
    shared = nbytes >= _SHARED
    if not fixed_units and not shared:  # NumPy copies long rows as fast
        return None
    allocate = allocator(result, dtype)

    def run(x: Array, indices: Array) -> Array | None:
        out = allocate()
        function = _gather_function(itemsize, index.name, fixed_units)
        wrong = np.zeros(1, np.int64)
        arrays = (np.ascontiguousarray(x), np.ascontiguousarray(indices), out, wrong)
        pointers = [address(array) for array in arrays]
        sizes = (before, length, units, count)

        def work(start: int, stop: int) -> None:
            function(*pointers, *sizes, start, stop, 0, count)

        def work_on_indices(start: int, stop: int) -> None:
            function(*pointers, *sizes, 0, rows, start, stop)

        if rows >= _AHEAD:
            parallel.in_parts(work, rows, shared=shared)
        else:
            parallel.in_parts(work_on_indices, count, shared=shared)
        return None if wrong[0] else out

    return run


@cache
def _gather_function(itemsize: int, index: str, width: int) -> Callable[..., None]:
    """Return the function that takes, of rows ``first`` to ``last``, those at some indices.

    These are the indices from ``start`` to ``stop``, of ``count``. ``width``: of what lies at one
    index, in elements; 0 where it is only known when it is called, as ``after``. ``wrong`` is set
    where an index is out of range; the first row is taken there.
    """
    f = Function(
        f"gather_{itemsize}_{index}_{width}",
        f"int{8 * itemsize}",
        ("x", "indices", "out", "wrong"),
        ("before", "length", "after", "count", "first", "last", "start", "stop"),
    )
    wrong = f.variable(0)
    one = width == 1
    copy = _copy_elements if one else partial(_copy_row, width)
    with f.loop(f["first"], f["last"]) as row:
        batch = f.builder.sdiv(row, f["before"])
        here = f.multiply(batch, f["count"])
        begin = f.multiply(f.multiply(row, f["length"]), f["after"])
        to = f.multiply(f.multiply(row, f["count"]), f["after"])
        with f.loop(f["start"], f["stop"], _INDICES if one else 1) as number:
            outside = copy(f, index, number, (here, begin, to))
            wrong.set(f.builder.or_(wrong.get(), _any(f, outside)))
    with f.when(f.builder.icmp_signed("!=", wrong.get(), f.number(0))):
        f.store(wrong.get(), f["wrong"], 0)
    return f.compiled()


def _copy_elements(
    f: Function, index: str, number: Value, starts: tuple[Value, Value, Value]
) -> Value:
    """Copy a vector of elements; return which indices are out of range.

    ``starts``: where the indices, the elements and the results of the row start.
    """
    here, begin, to = starts
    mask = f.mask(number, f["stop"], _INDICES)
    blank = f.number(0, f.vector(_INDICES, f.scalar(index)))
    raw_index = f.load_where(mask, blank, f["indices"], f.add(here, number))
    position, outside = _position(f, raw_index, unsigned=index.startswith("u"))
    nothing = f.number(0, f.vector(_INDICES))
    x = f.gather_at(mask, nothing, f.pointer_to(f["x"], begin), position)
    f.store_where(mask, x, f["out"], f.add(to, number))
    return outside


def _copy_row(
    width: int, f: Function, index: str, number: Value, starts: tuple[Value, Value, Value]
) -> Value:
    """Copy a row, likewise, and ask for a later one."""
    here, begin, to = starts
    kind, unsigned = f.scalar(index), index.startswith("u")
    lanes = _BYTES // f.itemsize
    later = f.least(f.add(number, _AHEAD), f.subtract(f["stop"], 1))
    position, _ = _position(
        f, f.load(f["indices"], f.add(here, later), 1, kind), unsigned=unsigned
    )
    ahead = f.add(begin, f.multiply(position, f["after"]))
    for line in range(1 if width else _LINES):
        f.prefetch(f["x"], f.add(ahead, line * lanes))
    raw_index = f.load(f["indices"], f.add(here, number), 1, kind)
    position, outside = _position(f, raw_index, unsigned=unsigned)
    source = f.add(begin, f.multiply(position, f["after"]))
    target = f.add(to, f.multiply(number, f["after"]))
    if width:
        f.store(f.load(f["x"], source, width), f["out"], target)
        return outside
    blank = f.number(0, f.vector(lanes))

    def copy(column: Value, mask: Value | None) -> None:
        x = f.load_where(mask, blank, f["x"], f.add(source, column))
        f.store_where(mask, x, f["out"], f.add(target, column))

    f.in_vectors(0, f["after"], lanes, copy)
    return outside


def _position(f: Function, raw_index: Value, *, unsigned: bool) -> tuple[Value, Value]:
    """Return positions from the front, 0 for those out of range, and which these are."""
    build = f.builder
    count = getattr(raw_index.type, "count", 1)
    whole = f.vector(count, f.integer)
    wide = raw_index
    if raw_index.type != whole:
        wide = (build.zext if unsigned else build.sext)(raw_index, whole)
    length, zero = f.spread(f["length"], count), f.number(0, whole)
    if not unsigned:
        negative = build.icmp_signed("<", wide, zero)
        wide = build.select(negative, build.add(wide, length), wide)
    outside = build.icmp_unsigned(">=", wide, length)
    return build.select(outside, zero, wide), outside


def _any(f: Function, mask: Value) -> Value:
    """Return an integer that is not 0 if a lane of ``mask`` holds."""
    count = getattr(mask.type, "count", 1)
    bits = f.builder.bitcast(mask, f.scalar(f"int{count}")) if count > 1 else mask
    return f.builder.zext(bits, f.integer)
