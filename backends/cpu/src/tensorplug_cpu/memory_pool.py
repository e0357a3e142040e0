"""Memory for large results, kept when a result dies and used again.

A new result of tens of megabytes costs as much in page faults as the addition that fills it: the
system takes large pieces of memory back when they are freed, and the pages of new ones fault when
first written. Here a piece is *leased* to an array. The array and everything made from it (views,
DLPack capsules, NumPy arrays of the user) keep the lease alive; when the last of them dies, the
piece returns to the pool. So no live array can see a piece that is leased again.

Idle pieces are bounded in bytes and in age. No thread ever waits for the lock: one that does not
get it takes new memory from NumPy, or gives a piece back to the system.
"""

from __future__ import annotations

import os
import threading
import tracemalloc
from collections import deque
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Shape
    from tensorplug_cpu.arrays import Array

__all__ = ["LARGE", "Lease", "Piece", "Pool", "allocator", "empty", "pool"]

LARGE: Final = 1 << 19
"""From this many bytes on, memory is recycled; below, the C library's allocator is as fast.

It now and then gives larger pieces back to the system, as results of many sizes come and go: in a
training step a new megabyte cost half a millisecond of page faults; a lease costs 4 microseconds.
"""

_PATIENCE: Final = 256  # pieces taken until one that stayed idle meanwhile is freed
_GRAIN: Final = 8  # sizes per octave: at most an eighth of a piece is unused


def _physical() -> int:
    """Return the bytes of the machine's memory, or a guess if the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on Windows
        return 8 << 30


class Piece:
    """Memory, its address, and how many pieces had been taken when it became idle."""

    __slots__ = ("address", "memory", "nbytes", "since")

    def __init__(self, size: int) -> None:
        self.memory = np.empty(size, np.uint8)
        self.address: int = self.memory.ctypes.data
        self.nbytes = size
        self.since = 0


class Lease:
    """One piece of memory in use; it is the base of the NumPy arrays over it."""

    __slots__ = ("__array_interface__", "__weakref__", "_piece", "_pool")

    def __init__(self, owner: Pool, piece: Piece, shape: Shape, typestr: str) -> None:
        self._pool = owner
        self._piece = piece
        self.__array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "data": (piece.address, False),
            "version": 3,
        }

    @property
    def nbytes(self) -> int:
        """Size of the whole piece."""
        return self._piece.nbytes

    def __del__(self) -> None:
        self._pool.take_back(self._piece)


class Pool:
    """Idle pieces by size.

    Args:
        limit: how many bytes may lie idle.

    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()  # never waited for: see above
        self._idle: dict[int, deque[Piece]] = {}
        self._bytes = 0
        self._taken = 0

    @property
    def bytes(self) -> int:
        """How many bytes lie idle."""
        return self._bytes

    @property
    def pieces(self) -> int:
        """How many pieces lie idle."""
        return sum(map(len, list(self._idle.values())))

    def empty(self, shape: Shape, dtype: np.dtype[Any]) -> Array:
        """Return an array of undefined numbers in row-major order."""
        return self.leased(_rounded(prod(shape) * dtype.itemsize), shape, dtype.str)

    def leased(self, size: int, shape: Shape, typestr: str) -> Array:
        """Return an array of undefined numbers over a piece of ``size`` bytes."""
        return np.asarray(Lease(self, self._piece(size), shape, typestr))

    def _piece(self, size: int) -> Piece:
        if not tracemalloc.is_tracing() and self._lock.acquire(blocking=False):
            try:
                self._taken += 1
                if self._taken % _PATIENCE == 0:
                    self._give_up(self._taken - _PATIENCE)
                idle = self._idle.get(size)
                if idle:
                    self._bytes -= size
                    return idle.pop()  # the most recent: parts of it may still be in the cache
            finally:
                self._lock.release()
        try:
            return Piece(size)
        except MemoryError:
            self.trim()
            return Piece(size)

    def take_back(self, piece: Piece) -> None:
        """Keep a piece for reuse. Called in any thread, when a lease ends."""
        if tracemalloc.is_tracing() or not self._lock.acquire(blocking=False):
            return  # let memory tracing see that it is freed
        try:
            size = piece.nbytes
            if self._bytes + size > self._limit:
                self._give_up(self._taken - _PATIENCE)
            if self._bytes + size <= self._limit:
                piece.since = self._taken
                idle = self._idle.get(size)
                if idle is None:
                    idle = self._idle[size] = deque()
                idle.append(piece)
                self._bytes += size
        finally:
            self._lock.release()

    def _give_up(self, before: int) -> None:
        """Free pieces that have been idle since ``before`` or longer."""
        for size, idle in list(self._idle.items()):
            while idle and idle[0].since <= before:
                idle.popleft()
                self._bytes -= size
            if not idle:
                del self._idle[size]

    def trim(self) -> None:
        """Free all idle pieces."""
        if self._lock.acquire(blocking=False):
            try:
                self._idle.clear()
                self._bytes = 0
            finally:
                self._lock.release()


def _rounded(size: int) -> int:
    """Return the next of eight sizes per octave."""
    grain = 1 << max(size.bit_length() - _GRAIN.bit_length(), 12)
    return -(-size // grain) * grain


pool: Final = Pool(min(1 << 30, _physical() // 8))


def _renew() -> None:
    """Give a forked child a new lock: another thread of the parent may have held the old one."""
    pool._lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_renew)


def empty(shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Return an array of undefined numbers, over recycled memory if it is large."""
    if prod(shape) * dtype.itemsize < LARGE:
        return np.empty(shape, dtype)
    return pool.empty(shape, dtype)


def allocator(shape: Shape, dtype: np.dtype[Any]) -> Callable[[], Array]:
    """Return ``empty`` for one shape and dtype, with the size computed in advance."""
    nbytes = prod(shape) * dtype.itemsize
    if nbytes < LARGE:
        return partial(np.empty, shape, dtype)
    return partial(pool.leased, _rounded(nbytes), shape, dtype.str)
