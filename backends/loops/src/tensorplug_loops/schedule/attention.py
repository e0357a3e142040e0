"""Attention of one query to a cache: items are parts of the keys, for heads that share them.

The first kernel reads each key and value once, for all heads that share it: it writes sums of the
values of a part, weighted relative to the part's largest score. The second one combines the parts.
An item whose part lies behind the length does nothing, so the time is that of the valid keys.
"""

from __future__ import annotations

from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug.plugin import Expression, Group, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_loops.schedule.launches import Launch, Program
from tensorplug_loops.schedule.loops import Loops
from tensorplug_loops.schedule.lowering import Lowering
from tensorplug_loops.schedule.writer import ZERO, Writer
from tensorplug_loops.statements import Array, Assign, Shared, Store, item, load, variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug.plugin import DType
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.statements import Kernel

_SHORT: Final = range(1 << 15, 1 << 23)  # scores; fewer take as long as calls do
_OF_HEAD: Final = 1 << 18  # scores; so many of one head no longer stay in its core's cache
_PART: Final = 512  # keys of an item: its scores stay in the cache, and threads have equal shares
_SUMS: Final = 12  # vectors in registers: of the products of some keys with all heads
_F32: Final = dt.float32
_LOWEST: Final = ex.constant(-float("inf"), _F32)
_NOTHING: Final = ex.constant(0.0, _F32)


class _Sizes(NamedTuple):
    """What the text of the kernels depends on: heads that share keys, widths, dtype, scale."""

    heads: int
    width: int
    of_v: int
    dtype: DType
    scale: float


_kernels: Final[dict[tuple[_Sizes, Machine], tuple[Kernel, Kernel]]] = {}


def is_short(q: TensorType, k: TensorType, lengths: TensorType | None) -> bool:
    """Return whether the decomposition is faster on a processor, whose groups hold all scores.

    It takes half the time of blocks of keys, and gradients a third.
    """
    alike = q.shape[:-2] == k.shape[:-2] and lengths is None
    *heads, queries = q.shape[:-1]
    scores = queries * k.shape[-2]
    return alike and queries > 1 and scores < _OF_HEAD and prod(heads) * scores in _SHORT


def plan_query(q: TensorType, v: TensorType, scale: float, machine: Machine) -> Program | None:
    """Return the program of one query for each head; None if the widths are no whole vectors.

    Its arrays are q [batches, heads, width], k [batches, keys, width], v [batches, keys, of v],
    lengths, int64 [batches]; y [batches, heads, of v] and log_sum_exp, float32 [batches, heads].
    """
    batches, heads, width = q.shape
    keys, of_v = v.shape[1:]
    lanes = machine.vector_bytes // _F32.itemsize
    if q.dtype.compute is not _F32 or lanes < 1 or width % lanes or of_v % lanes:
        return None
    sizes = _Sizes(heads, width, of_v, q.dtype, scale)
    made = _kernels.get((sizes, machine))
    if made is None:
        text = _Text(sizes, machine)
        made = _kernels[sizes, machine] = text.parts(), _Text(sizes, machine).combination()
    first, second = made
    parts, rows = max(1, -(-keys // _PART)), batches * heads
    cost = min(keys, _PART) * heads * (width + of_v) // 4
    return Program(
        (
            Launch(first, (0, 1, 2, 3, 6, 7, 8), (parts, keys), batches * parts, cost),
            Launch(second, (6, 7, 8, 4, 5), (parts,), rows, 2 * parts * of_v // lanes),
        ),
        (TensorType(q.dtype, (batches, heads, of_v)), TensorType(_F32, (batches, heads))),
        ((_F32, rows * parts * of_v), (_F32, rows * parts), (_F32, rows * parts)),
    )


class _Text:
    """Writes one kernel."""

    def __init__(self, sizes: _Sizes, machine: Machine) -> None:
        self._sizes, self._lanes = sizes, machine.vector_bytes // _F32.itemsize
        self._lowering = Lowering(machine)
        self._held = self._lowering.converter.held(sizes.dtype)
        self._w = Writer(Loops(Group("attention", (1,), (), (), ())), self._lowering)

    def parts(self) -> Kernel:
        """Return the kernel of the parts."""
        w, sizes = self._w, self._sizes
        w.emit(Shared("a", _F32, sizes.heads * sizes.width))
        w.emit(Shared("s", _F32, sizes.heads * (_PART + _SUMS)))
        number = w.let(item())
        batch, part = w.divided(number, w.number("parts"))
        keys = w.number("keys")
        count = w.least(w.copy(load("n", dt.int64, batch)), keys)
        first = w.let(part * _PART)
        self._count = w.greatest(w.let(w.least(first + _PART, count) - first), ZERO)
        self._start = w.let(batch * keys + first)  # the number of the first key
        self._scale_queries(w.let(batch * (sizes.heads * sizes.width)))
        self._score()
        for head in range(sizes.heads):
            self._weigh(head, w.let(number * sizes.heads + head))
        self._add_values(w.let(number * (sizes.heads * sizes.of_v)))
        return w.kernel(
            "attention of one query: parts of the keys",
            [
                *(Array(name, self._held) for name in "qkv"),
                Array("n", dt.int64),
                *(Array(name, _F32, written=True) for name in "pmt"),
            ],
        )

    @contextmanager
    def _vector(self) -> Iterator[Expression]:
        """Write what is done for a vector; gives the number of a lane."""
        lanes = self._lanes
        stop = ex.constant(lanes, dt.int64)
        with self._w.loop(None, ZERO, stop, step=lanes, lanes=lanes, whole=True) as lane:
            yield lane

    def _wide(self, array: str, at: Expression) -> Expression:
        """Return an element of q, k or v in float32."""
        found = self._w.copy(load(array, self._held, at))
        return self._w.here(self._lowering.converter.cast(found, self._sizes.dtype, _F32))

    def _computed(self, root: Expression) -> Expression:
        """Return a value whose functions are taken apart."""
        (lowered,) = self._lowering.lower([root])
        return self._w.here(lowered)

    def _greater(self, a: Expression, b: Expression) -> Expression:
        return self._computed(ex.apply("maximum", a, b))

    def _folded(
        self, name: str, combine: Callable[[Expression, Expression], Expression]
    ) -> Expression:
        """Return what the lanes of a variable come to."""
        w, value, lanes = self._w, self._w.copy(variable(name, _F32)), self._lanes
        while lanes > 1:
            low, high = (w.let(Expression("half", _F32, (value,), at)) for at in (0, 1))
            value, lanes = w.let(combine(low, high)), lanes // 2
        return value

    def _scale_queries(self, start: Expression) -> None:
        w, sizes = self._w, self._sizes
        stop = ex.constant(sizes.heads * sizes.width, dt.int64)
        with w.loop(None, ZERO, stop, step=self._lanes, lanes=self._lanes, whole=True) as at:
            scaled = self._wide("q", at + start) * ex.constant(sizes.scale, _F32)
            w.emit(Store("a", at, w.let(scaled)))

    def _score(self) -> None:
        """Write the scores of all keys; those behind the last one repeat it."""
        w, sizes, lanes = self._w, self._sizes, self._lanes
        several = max(1, _SUMS // sizes.heads)
        stop = ex.constant(sizes.width, dt.int64)
        last = w.let(self._count - 1)
        with w.loop(None, ZERO, self._count, step=several) as at:
            rows = [
                w.let((self._start + w.least(at + more, last)) * sizes.width)
                for more in range(several)
            ]
            sums = [[w.declare(_NOTHING, lanes) for _ in rows] for _ in range(sizes.heads)]
            with w.loop(None, ZERO, stop, step=lanes, lanes=lanes, whole=True) as place:
                keys = [self._wide("k", place + row) for row in rows]
                for head, own in enumerate(sums):
                    query = w.copy(load("a", _F32, place + head * sizes.width))
                    for name, key in zip(own, keys, strict=True):
                        self._add_product(name, query, key)
            for head, own in enumerate(sums):
                for more, name in enumerate(own):
                    total = self._folded(name, lambda a, b: a + b)
                    w.emit(Store("s", at + (head * (_PART + _SUMS) + more), total))

    def _add_product(self, name: str, a: Expression, b: Expression) -> None:
        self._w.emit(Assign(name, Expression("fma", _F32, (a, b, variable(name, _F32)))))

    def _weigh(self, head: int, row: Expression) -> None:
        """Write the exponentials of a head's scores in their place, the largest, and the sum."""
        w, lanes, base = self._w, self._lanes, head * (_PART + _SUMS)
        top, total = w.declare(_LOWEST, lanes), w.declare(_NOTHING, lanes)
        with w.loop(None, ZERO, self._count, step=lanes, lanes=lanes) as at:
            score = w.copy(load("s", _F32, at + base))
            w.emit(Assign(top, self._greater(w.copy(variable(top, _F32)), score)))
        largest = self._folded(top, self._greater)
        zero = w.let(ex.where(w.let(ex.apply("equal", largest, _LOWEST)), _NOTHING, largest))
        with w.loop(None, ZERO, self._count, step=lanes, lanes=lanes) as at:
            score = w.copy(load("s", _F32, at + base))
            share = self._computed(ex.function("exp", score - zero))
            w.emit(Store("s", at + base, share))
            w.emit(Assign(total, w.copy(variable(total, _F32)) + share))
        w.emit(Store("m", row, largest))
        w.emit(Store("t", row, self._folded(total, lambda a, b: a + b)))

    def _add_values(self, to: Expression) -> None:
        """Write the weighted sums of values."""
        w, sizes, lanes = self._w, self._sizes, self._lanes
        several = next(n for n in (4, 2, 1) if n * sizes.heads <= _SUMS or n == 1)
        several = next(n for n in (several, 2, 1) if sizes.of_v % (n * lanes) == 0)
        stop = ex.constant(sizes.of_v, dt.int64)
        with w.loop(None, ZERO, stop, step=several * lanes) as column, self._vector() as lane:
            sums = [[w.declare(_NOTHING) for _ in range(several)] for _ in range(sizes.heads)]
            with w.loop(None, ZERO, self._count) as at:
                row = w.let((self._start + at) * sizes.of_v + column)
                values = [self._wide("v", lane + (row + n * lanes)) for n in range(several)]
                for head, own in enumerate(sums):
                    share = w.copy(load("s", _F32, at + head * (_PART + _SUMS)))
                    for name, value in zip(own, values, strict=True):
                        self._add_product(name, share, value)
            for head, own in enumerate(sums):
                for n, name in enumerate(own):
                    place = w.let(to + column + (head * sizes.of_v + n * lanes))
                    w.emit(Store("p", lane + place, variable(name, _F32)))

    def combination(self) -> Kernel:
        """Return the kernel that combines the parts of a row."""
        w, sizes, lanes = self._w, self._sizes, self._lanes
        row, parts = w.let(item()), w.number("parts")
        batch, head = w.divided(row, ex.constant(sizes.heads, dt.int64))
        start = w.let(batch * parts * sizes.heads + head)
        top, total = w.declare(_LOWEST), w.declare(_NOTHING)
        with w.loop(None, ZERO, parts) as part:
            own = w.copy(load("m", _F32, w.let(start + part * sizes.heads)))
            before = w.copy(variable(top, _F32))
            w.emit(Assign(top, self._greater(before, own)))
        largest = w.copy(variable(top, _F32))
        zero = w.let(ex.where(w.let(ex.apply("equal", largest, _LOWEST)), _NOTHING, largest))
        with w.loop(None, ZERO, parts) as part:
            at = w.let(start + part * sizes.heads)
            share = self._computed(ex.function("exp", w.copy(load("m", _F32, at)) - zero))
            w.emit(Store("m", at, share))
            self._add_product(total, share, w.copy(load("t", _F32, at)))
        sum_ = w.copy(variable(total, _F32))
        w.emit(Store("l", row, self._computed(largest + ex.function("log", sum_))))
        whole = w.let(
            ex.where(w.let(ex.apply("equal", sum_, _NOTHING)), ex.constant(1.0, _F32), sum_)
        )
        stop = ex.constant(sizes.of_v, dt.int64)
        with w.loop(None, ZERO, stop, step=lanes, lanes=lanes, whole=True) as lane:
            value = w.declare(_NOTHING)
            with w.loop(None, ZERO, parts) as part:
                at = w.let(start + part * sizes.heads)
                found = w.copy(load("p", _F32, lane + w.let(at * sizes.of_v)))
                self._add_product(value, w.copy(load("m", _F32, at)), found)
            y = w.let(w.copy(variable(value, _F32)) / whole)
            y = w.here(self._lowering.converter.cast(y, _F32, sizes.dtype))
            w.emit(Store("y", lane + w.let(row * sizes.of_v), y))
        return w.kernel(
            "attention of one query: all keys",
            [
                Array("p", _F32),
                Array("m", _F32, written=True),
                Array("t", _F32),
                Array("y", self._held, written=True),
                Array("l", _F32, written=True),
            ],
        )
