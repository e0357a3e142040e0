"""Memory that comes into being while somebody counts, for as long as anybody holds it.

Each piece is counted once, however many buffers share it, and until the last buffer dies: when
the last tensor and the tape have let go of it. Nothing is looked through; buffers tell by weak
references when they die. Of a backend whose buffers cannot be referred to weakly, the tensors
are watched instead, and what only the tape still holds counts as freed.
"""

from __future__ import annotations

import itertools
from collections import deque
from typing import TYPE_CHECKING, Any
from weakref import ref

from tensorplug.dispatch.locks import Lock

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from tensorplug.dispatch.tensor import Tensor

__all__ = ["Allocations"]

Key = tuple[int, "Hashable"]  # device by identity, and what names the memory there


class _Piece:
    """One piece of memory: its bytes, its number in order, and who holds it, by identity."""

    __slots__ = ("holders", "number", "size")

    def __init__(self, size: int, number: int) -> None:
        self.size = size
        self.number = number
        self.holders: dict[int, ref[Any]] = {}


class Allocations:
    """The pieces of memory that were counted and are still held.

    ``bytes`` are those held now, ``peak`` the most there were at a time.
    """

    def __init__(self) -> None:
        self.peak = 0
        self._bytes = 0
        self._pieces: dict[Key, _Piece] = {}
        self._numbers = itertools.count(1)
        self._last = 0
        # Filled while a buffer dies, at any moment and in any thread; emptied under the lock.
        self._dead: deque[tuple[Key, int]] = deque()
        self._watched: dict[int, tuple[Key, ref[Tensor]]] = {}  # tensors instead of buffers
        self._lock = Lock()

    @property
    def bytes(self) -> int:
        """How many bytes are held now."""
        with self._lock:
            self._settle()
            return self._bytes

    def mark(self) -> int:
        """Return a number that tells older pieces from those counted afterwards."""
        return self._last

    def count(self, made: Iterable[Tensor], given: Iterable[Tensor] = (), since: int = 0) -> int:
        """Count the memory under ``made``, but for what lies under ``given``.

        Returns the bytes of what was counted after the mark ``since``, by this call or before.
        """
        with self._lock:
            self._settle()
            old = {key for key, _, _ in map(_allocation, given)}
            fresh: dict[Key, int] = {}
            for tensor in made:
                key, buffer, size = _allocation(tensor)
                if buffer is None:
                    continue
                piece = self._pieces.get(key)
                if piece is None:
                    if key in old:
                        continue  # memory from before, of which this is a view
                    self._last = next(self._numbers)
                    piece = self._pieces[key] = _Piece(size, self._last)
                    self._bytes += size
                self._hold(key, piece, tensor, buffer)
                if piece.number > since:
                    fresh[key] = piece.size
            self.peak = max(self.peak, self._bytes)
            return sum(fresh.values())

    def holds(self, tensor: Tensor) -> bool:
        """Return whether the memory under a tensor was counted; False if it is disposed."""
        with self._lock:
            self._settle()
            return _allocation(tensor)[0] in self._pieces

    def _hold(self, key: Key, piece: _Piece, tensor: Tensor, buffer: Any) -> None:
        # An identity may be used again, but only after the buffer that had it was taken out.
        dead = self._dead
        if id(buffer) in piece.holders or id(tensor) in piece.holders:
            return
        try:
            holder = id(buffer)
            piece.holders[holder] = ref(buffer, lambda _: dead.append((key, holder)))
        except TypeError:
            other = id(tensor)
            watched = ref(tensor, lambda _: dead.append((key, other)))
            piece.holders[other] = watched
            self._watched[other] = (key, watched)

    def _settle(self) -> None:
        """Take out what has died. It died before its memory could be given to another."""
        for holder, (key, reference) in list(self._watched.items()):
            tensor = reference()
            if tensor is not None and tensor.is_disposed:
                self._dead.append((key, holder))
        while self._dead:
            key, holder = self._dead.popleft()
            self._watched.pop(holder, None)
            piece = self._pieces.get(key)
            if piece is None or piece.holders.pop(holder, None) is None or piece.holders:
                continue
            del self._pieces[key]
            self._bytes -= piece.size


def _allocation(tensor: Tensor) -> tuple[Key, Any, int]:
    """Return what names a tensor's memory, its buffer and the bytes; no buffer if it is gone."""
    placement: Any = tensor._placement
    device, buffer = placement.device, tensor._buffer
    # Another thread may dispose of the tensor at any moment.
    if buffer is None or device is None or device.closed:
        return (0, None), None, 0
    name, size = device.backend.allocation(buffer)
    return (id(device), name), buffer, size
