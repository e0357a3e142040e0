"""Adding rows by number: the gradient of an embedding, segment sums, weighted counts.

Where the result does not stay in the cache, or most targets get a row or none, long rows are
brought into the order of their targets first, by counting. Then each row of the result is written
once, from sums in registers, and threads share the targets. Other rows are added one after the
other.

By hand, for the forms, which add to memory, took 2.5 times as long (2^20 elements in rows of 16).
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu.execution import parallel
from tensorplug_cpu.jit.codegen.functions import Function
from tensorplug_cpu.jit.codegen.settings import is_worthwhile
from tensorplug_cpu.jit.loops.addresses import address
from tensorplug_cpu.jit.loops.calls import launch
from tensorplug_cpu.memory.pool import allocator

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array

    Value = Any  # of llvmlite


_ADDED: Final = frozenset(map(np.dtype, ("float32", *"bhilqBHILQ")))
_BYTES: Final = 64  # of a vector, and of a line of the cache
_SOON: Final = 6 << 10  # bytes from what is added to what is asked for
_WIDE: Final = 64  # columns from which threads share them, if there are many elements
_SHARED: Final = 1 << 22  # elements that are added, or bytes that are moved, by several threads
_LONG: Final = 16  # columns from which rows are ordered first
_SCATTERED: Final = 1 << 18  # elements of a result that does not stay in the cache
_SPARSE: Final = 16  # times as many targets as rows: most rows of the result stay 0
_AHEAD: Final = 4  # rows from what is added to what is asked for, where they are ordered
_GRAIN: Final = 1 << 16  # bytes of the result that a thread takes at once


def row_adder(
    count: int, width: int, size: int, dtype: np.dtype[Any]
) -> Callable[[Array, Array], Array] | None:
    """Return what adds ``count`` rows, each at its target, to zeros ``[size, width]``.

    float32 is added in float64 and rounded once; integers wrap. Targets are integers of any dtype,
    in range. None where a loop is no help, as where most rows of the result get none.
    """
    if dtype not in _ADDED or not is_worthwhile(count * width):
        return None
    scattered = count < size or size * width >= _SCATTERED
    if scattered and width >= _LONG and size <= _SPARSE * count:
        return _ordered_adder(count, width, size, dtype)
    if count < size:
        return None
    wide = np.dtype(np.float64) if dtype.kind == "f" else dtype
    shared = width >= _WIDE and count * width >= _SHARED
    name = dtype.name

    def run(targets: Array, rows: Array) -> Array:
        total = np.zeros((size, width), wide)
        function = _add_function(name, one=width == 1)
        numbers = np.ascontiguousarray(targets, np.int64)
        arrays = (numbers, np.ascontiguousarray(rows), total)
        at = [address(array) for array in arrays]
        parallel.in_parts(
            lambda start, stop: function(*at, count, width, start, stop), width, shared=shared
        )
        return total.astype(dtype, copy=False)

    return run


def _ordered_adder(
    count: int, width: int, size: int, dtype: np.dtype[Any]
) -> Callable[[Array, Array], Array]:
    """Return ``row_adder`` for long rows."""
    whole = np.dtype(np.int64)
    allocate = allocator((size, width), dtype)
    make_starts, make_order = allocator((size + 2,), whole), allocator((count,), whole)
    grain = max(1, _GRAIN // (width * dtype.itemsize))
    integers = -(-size // grain), grain, size, width, count - 1
    shared = (size + count) * width * dtype.itemsize >= _SHARED
    name = dtype.name

    def run(targets: Array, rows: Array) -> Array:
        same = rows.strides[0] == 0  # the gradient of a sum: one row stands for all
        numbers = np.ascontiguousarray(targets, np.int64)
        rows = np.ascontiguousarray(rows[:1] if same else rows)
        starts, order, result = make_starts(), make_order(), allocate()
        pointers = [address(array) for array in (numbers, starts, order, rows, result)]
        _order_function()(*pointers[:3], count, size)
        step = 0 if same else width
        launch(_sum_function(name), pointers[1:], (*integers, step), shared=shared)
        return result

    return run


@cache
def _order_function() -> Callable[..., None]:
    """Return the function that orders the numbers of rows by their targets.

    ``starts``: [size + 2]; then the rows of target ``t`` are ``order[starts[t]:starts[t + 1]]``.
    """
    f = Function("order_rows", "int64", ("targets", "starts", "order"), ("count", "size"))
    begins = f.pointer_to(f["starts"], 1)  # of each target, until its rows are written
    with f.loop(0, f.add(f["size"], 2)) as target:
        f.store(f.number(0), f["starts"], target)
    with f.loop(0, f["count"]) as row:
        after = f.add(f.whole(f["targets"], row), 1)
        f.store(f.add(f.whole(begins, after), 1), begins, after)
    total = f.variable(0)
    with f.loop(0, f["size"]) as target:
        total.set(f.add(total.get(), f.whole(begins, target)))
        f.store(total.get(), begins, target)
    with f.loop(0, f["count"]) as row:
        target = f.whole(f["targets"], row)
        to = f.whole(begins, target)
        f.store(row, f["order"], to)
        f.store(f.add(to, 1), begins, target)
    return f.compiled()


@cache
def _sum_function(dtype: str) -> Callable[..., None]:
    """Return the function that adds the ordered rows of some targets, as a thread gets them."""
    f = Function(
        f"sum_rows_{dtype}",
        dtype,
        ("starts", "order", "rows", "out", "counter"),
        ("items", "grain", "size", "width", "last", "step"),
    )
    build, floating = f.builder, dtype == "float32"
    lanes = _BYTES // f.itemsize
    narrow = f.vector(lanes)
    wide = f.vector(lanes, f.scalar("float64")) if floating else narrow
    blank = f.number(0, narrow)

    def add(
        target: Value, rows: tuple[Value, Value], ahead: Value, column: Value, mask: Value | None
    ) -> None:
        if mask is None:
            f.prefetch(f["rows"], f.add(ahead, column))
        total = f.variable(f.number(0, wide))
        with f.loop(*rows) as number:
            here = f.add(f.multiply(f.whole(f["order"], number), f["step"]), column)
            x = f.load_where(mask, blank, f["rows"], here)
            x = build.fpext(x, wide) if floating else x
            total.set((build.fadd if floating else build.add)(total.get(), x))
        value = build.fptrunc(total.get(), narrow) if floating else total.get()
        f.store_where(mask, value, f["out"], f.add(target, column))

    with f.taken(f["items"]) as item:
        first = f.multiply(item, f["grain"])
        with f.loop(first, f.least(f.add(first, f["grain"]), f["size"])) as target:
            rows = f.whole(f["starts"], target), f.whole(f["starts"], f.add(target, 1))
            soon = f.whole(f["order"], f.least(f.add(rows[0], _AHEAD), f["last"]))
            ahead = f.multiply(soon, f["step"])
            to = f.multiply(target, f["width"])
            f.in_vectors(0, f["width"], lanes, partial(add, to, rows, ahead))
    return f.compiled()


@cache
def _add_function(dtype: str, *, one: bool) -> Callable[..., None]:
    """Return the function that adds columns ``start`` to ``stop`` of all rows."""
    floating = dtype == "float32"
    f = Function(
        f"add_rows_{dtype}_{one:d}",
        dtype,
        ("targets", "rows", "total"),
        ("count", "width", "start", "stop"),
    )
    build = f.builder
    wide = f.scalar("float64" if floating else dtype)
    lanes = 1 if one else _BYTES // f.itemsize

    blank, zero = f.number(0, f.vector(lanes)), f.number(0, f.vector(lanes, wide))

    def add(begin: Value, to: Value, column: Value, mask: Value | None) -> None:
        here, target = f.add(begin, column), f.add(to, column)
        if mask is None:
            f.prefetch(f["rows"], f.add(here, _SOON // f.itemsize))
        x = f.load_where(mask, blank, f["rows"], here)
        x = build.fpext(x, zero.type) if floating else x
        total = f.load_where(mask, zero, f["total"], target)
        total = build.fadd(total, x) if floating else build.add(total, x)
        f.store_where(mask, total, f["total"], target)

    with f.loop(0, f["count"]) as row:
        target = f.whole(f["targets"], row)
        begin, to = f.multiply(row, f["width"]), f.multiply(target, f["width"])
        f.in_vectors(f["start"], f["stop"], lanes, partial(add, begin, to))
    return f.compiled()
