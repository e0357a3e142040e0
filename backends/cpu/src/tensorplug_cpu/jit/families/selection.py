"""The few largest elements of each row, in one pass over the rows.

The largest elements so far are kept in order. A vector of elements is compared with the least of
them at once; only what is larger, which is rare in most rows, is inserted.

Elements are compared as integers (``jit.codegen.keys``).

By hand, for the form, which ranks and merges, took 29 to 56 times as long.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu.execution import parallel
from tensorplug_cpu.jit.codegen.functions import Function
from tensorplug_cpu.jit.codegen.keys import Keys
from tensorplug_cpu.jit.codegen.settings import is_worthwhile
from tensorplug_cpu.jit.loops.addresses import address
from tensorplug_cpu.memory.pool import empty

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array
    from tensorplug_cpu.jit.codegen.control_flow import Variable

    Value = Any  # of llvmlite


_ROOMS: Final = (16, 64)  # elements of one result: as many lanes as are moved for a new one
_SHARED: Final = 1 << 17  # elements from which threads are worth their hand-over
_BYTES: Final = 64  # of a vector


def largest(
    shape: tuple[int, int], dtype: np.dtype[Any], k: int
) -> Callable[[Array], tuple[Array, Array]] | None:
    """Return what finds the ``k`` largest elements of each row, and their indices (int32).

    The results are ``[rows, k]``, the largest first, and of equals the one with the lowest index.
    None where there is no such loop for these real numbers, or nothing worth it.
    """
    rows, length = shape
    if not 0 < k <= _ROOMS[-1] or 2 * k > length or not is_worthwhile(rows * length):
        return None
    row_bytes, value_bytes, index_bytes = length * dtype.itemsize, k * dtype.itemsize, k * 4
    room = next(room for room in _ROOMS if room >= k)
    shared = rows * length >= _SHARED

    def run(x: Array) -> tuple[Array, Array]:
        values, indices = empty((rows, k), dtype), empty((rows, k), np.dtype(np.int32))
        function = _function(dtype.kind, dtype.itemsize, room)
        source = np.ascontiguousarray(x)
        arrays = (source, values, indices)
        at, to, positions = (address(array) for array in arrays)

        def work(start: int, stop: int) -> None:
            function(
                at + start * row_bytes,
                to + start * value_bytes,
                positions + start * index_bytes,
                stop - start,
                length,
                k,
            )

        parallel.in_parts(work, rows, shared=shared)
        return values, indices

    return run


@cache
def _function(kind: str, itemsize: int, room: int) -> Callable[..., None]:
    """Return the function for all rows of elements of this kind and size, and k up to ``room``."""
    dtype = f"int{8 * itemsize}"
    f = Function(
        f"largest_{kind}{itemsize}_{room}",
        dtype,
        ("x", "values", "indices"),
        ("rows", "length", "k"),
    )
    build = f.builder
    count = _BYTES // itemsize
    keys = Keys(f, kind, itemsize)
    best = _Best(f, keys.most, room)
    blank = f.number(0, f.vector(count))
    unused = f.subtract(room, f["k"])
    with f.loop(0, f["rows"]) as row:
        begin = f.multiply(row, f["length"])
        best.clear()
        with f.loop(0, f["k"]) as number:
            key = keys.of(f.load(f["x"], f.add(begin, number)))
            best.insert(key, number, f.add(unused, number))
        least = f.variable(best.least())
        with f.loop(f["k"], f["length"], count) as start:
            inside = f.mask(start, f["length"], count)
            x = keys.of(f.load_where(inside, blank, f["x"], f.add(begin, start)))
            above = build.icmp_signed(">", x, f.spread(least.get(), count))
            bits = build.bitcast(build.and_(above, inside), f.scalar(f"int{count}"))
            left = f.variable(bits if count == 64 else build.zext(bits, f.integer))
            with f.repeat(partial(_is_not_zero, f, left)):
                mask = left.get()
                position = f.add(start, f.intrinsic("cttz", mask, flag=False))
                left.set(build.and_(mask, build.sub(mask, f.number(1))))
                key = keys.of(f.load(f["x"], f.add(begin, position)))
                best.insert(key, position)
                least.set(best.least())
        to = f.multiply(row, f["k"])
        positions = best.stored()
        with f.loop(0, f["k"]) as number:
            position = f.load(positions, f.add(unused, number), 1, best.index)
            at = f.add(begin, build.sext(position, f.integer))
            f.store(f.load(f["x"], at), f["values"], f.add(to, number))
            f.store(position, f["indices"], f.add(to, number))
    return f.compiled()


def _is_not_zero(f: Function, number: Variable) -> Value:
    return f.builder.icmp_signed("!=", number.get(), f.number(0))


class _Best:
    """The last lanes of vectors: the largest keys so far, and their indices, in order.

    The lanes before them hold the greatest key, which nothing precedes.
    """

    def __init__(self, f: Function, most: int, room: int) -> None:
        self.f, self.room = f, room
        self.index = f.scalar("int32")
        self._most = f.number(most, f.vector(room))
        self._keys = f.variable(self._most)
        self._positions = f.variable(f.number(0, f.vector(room, self.index)))
        self._stored = f.array(room, self.index)

    def clear(self) -> None:
        """Forget all keys."""
        self._keys.set(self._most)

    def least(self) -> Value:
        """Return the least key."""
        return self.f.part(self._keys.get(), self.room - 1, 1)

    def insert(self, key: Value, position: Value, free: Value = None) -> None:
        """Put a key after those that are not less; the last one is lost.

        ``free``: from which lane on there are none so far, if there are such lanes.
        """
        f, build, room = self.f, self.f.builder, self.room
        bits, mask = f.scalar(f"int{room}"), f.vector(room, f.scalar("int1"))
        keys, positions = self._keys.get(), self._positions.get()
        new = f.spread(key, room)
        lanes = build.bitcast(build.icmp_signed("<", keys, new), bits)
        if free is not None:
            ones = f.number(-1, f.integer)
            beyond = build.shl(ones, free)
            lanes = build.or_(lanes, beyond if room == 64 else build.trunc(beyond, bits))
        first = build.and_(lanes, build.not_(build.shl(lanes, f.number(1, bits))))
        moved, here = build.bitcast(lanes, mask), build.bitcast(first, mask)
        order = [0, *range(room - 1)]
        number = f.spread(build.trunc(position, self.index), room)
        for old, value, variable in (
            (keys, new, self._keys),
            (positions, number, self._positions),
        ):
            shifted = build.select(moved, f.pick(old, order), old)
            variable.set(build.select(here, value, shifted))

    def stored(self) -> Value:
        """Return the address of the indices."""
        self.f.store(self._positions.get(), self._stored, 0)
        return self._stored
