"""Memory for large results, kept when a result dies and used again.

A new result of tens of megabytes costs as much in page faults as the addition that fills it: the
system takes large pieces of memory back when they are freed, and the pages of new ones fault when
first written. Here a piece is *leased* to an array. The array and everything made from it (views,
DLPack capsules, NumPy arrays of the user) keep the lease alive; when the last of them dies, the
piece returns to the pool. So no live array can see a piece that is leased again.

Idle pieces are bounded in bytes and in age: those of each size at once, all together when the
next large result takes new memory. There is no lock, since each step is one operation of a
``deque``. No Python code runs when a lease ends, because an interrupt there would be lost.
"""

from __future__ import annotations

import os
import tracemalloc
from collections import deque
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Shape
    from tensorplug_cpu.arrays import Array


LARGE: Final = 1 << 19
"""From this many bytes on, the result of a ufunc is recycled memory.

Below, the C library's allocator is as fast, as long as results have few sizes. As results of many
sizes come and go, it gives larger pieces back to the system: in a training step a new megabyte
cost half a millisecond of page faults; a lease costs 2 to 4 microseconds.
"""

_RECYCLED: Final = 1 << 18  # likewise, of native loops, which are long for their results

_PATIENCE: Final = 256  # pieces taken before those that stayed idle meanwhile are freed
_GRAIN: Final = 8  # sizes per octave: at most an eighth of a piece is unused


def _physical() -> int:
    """Return the bytes of the machine's memory, or a guess if the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on Windows
        return 8 << 30


class Piece:
    """Memory, and its address."""

    __slots__ = ("address", "memory", "nbytes")

    def __init__(self, size: int) -> None:
        self.memory = np.empty(size, np.uint8)
        self.address: int = self.memory.ctypes.data
        self.nbytes = size


class _Return(ref[Any]):
    """Brings the piece of a dead lease back: its callback appends it to the idle ones.

    ``aged``: whether it was idle when these were last looked through.
    """

    __slots__ = ("aged", "piece")

    piece: Piece
    aged: bool


class Lease:
    """One piece of memory in use; it is the base of the NumPy arrays over it."""

    __slots__ = ("__array_interface__", "__weakref__", "_return", "nbytes")

    def __init__(self, piece: Piece, idle: deque[_Return], shape: Shape, typestr: str) -> None:
        self.nbytes = piece.nbytes  # size of the whole piece
        self.__array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "data": (piece.address, False),
            "version": 3,
        }
        back = _Return(self, idle.append)
        back.piece, back.aged = piece, False
        self._return = back


class Pool:
    """Idle pieces by size.

    Args:
        limit: how many bytes may lie idle.

    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._idle: dict[int, deque[_Return]] = {}
        self._taken = 0

    @property
    def bytes(self) -> int:
        """How many bytes lie idle."""
        return sum(size * len(idle) for size, idle in list(self._idle.items()))

    @property
    def pieces(self) -> int:
        """How many pieces lie idle."""
        return sum(map(len, list(self._idle.values())))

    def empty(self, shape: Shape, dtype: np.dtype[Any]) -> Array:
        """Return an array of undefined numbers in row-major order."""
        code = _code(dtype)
        leased = self.leased(_rounded(prod(shape) * dtype.itemsize), shape, code)
        return leased if code == dtype.str else leased.view(dtype)

    def leased(self, size: int, shape: Shape, typestr: str) -> Array:
        """Return an array of undefined numbers over a piece of ``size`` bytes."""
        idle = self._idle.get(size)
        if idle is None:  # one piece too many: the oldest makes room
            idle = self._idle.setdefault(size, deque(maxlen=self._limit // size))
        if tracemalloc.is_tracing():  # let it see that memory is allocated and freed
            idle = deque(maxlen=0)
        return np.asarray(Lease(self._piece(size, idle), idle, shape, typestr))

    def _piece(self, size: int, idle: deque[_Return]) -> Piece:
        self._taken += 1
        if self._taken % _PATIENCE == 0:
            self._give_up()
        try:
            return idle.pop().piece  # the most recent: parts of it may still be in the cache
        except IndexError:
            self._limit_bytes()
        try:
            return Piece(size)
        except MemoryError:
            self.trim()
            return Piece(size)

    def _give_up(self) -> None:
        """Free the pieces that have been idle since the last time."""
        for idle in list(self._idle.values()):
            for _ in range(len(idle)):
                try:
                    back = idle.popleft()
                except IndexError:  # another thread took the last one
                    break
                if not back.aged:
                    back.aged = True
                    idle.append(back)

    def _limit_bytes(self) -> None:
        """Free idle pieces, the oldest of each size first, until the limit is kept."""
        for idle in list(self._idle.values()):
            while self.bytes > self._limit:
                try:
                    idle.popleft()
                except IndexError:
                    break

    def trim(self) -> int:
        """Free all idle pieces; return how many bytes they had."""
        freed = self.bytes
        for idle in list(self._idle.values()):
            idle.clear()
        return freed


def _rounded(size: int) -> int:
    """Return the next of eight sizes per octave."""
    grain = 1 << max(size.bit_length() - _GRAIN.bit_length(), 12)
    return -(-size // grain) * grain


pool: Final = Pool(min(1 << 30, _physical() // 8))


def empty(shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Return an array of undefined numbers, over recycled memory if it is large."""
    if prod(shape) * dtype.itemsize < _RECYCLED:
        return np.empty(shape, dtype)
    return pool.empty(shape, dtype)


def allocator(shape: Shape, dtype: np.dtype[Any]) -> Callable[[], Array]:
    """Return ``empty`` for one shape and dtype, with the size computed in advance."""
    nbytes = prod(shape) * dtype.itemsize
    if nbytes < _RECYCLED:
        return partial(np.empty, shape, dtype)
    if _code(dtype) != dtype.str:
        return partial(pool.empty, shape, dtype)
    return partial(pool.leased, _rounded(nbytes), shape, dtype.str)


def _code(dtype: np.dtype[Any]) -> str:
    """Return the code of a dtype; for bfloat16, which has none, that of integers of its size."""
    return f"|u{dtype.itemsize}" if dtype.kind == "V" else dtype.str
