"""Counting the memory allocated during a profile, as long as it is in use.

Each allocation is counted once, even if several buffers share it, until its last buffer is freed.
Weak references to buffers report that. If buffers of a backend do not support weak references,
tensors are watched instead, and memory that only the tape holds counts as freed.
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


Key = tuple[int, "Hashable"]  # the device by identity, and the backend's key of the memory


class _Piece:
    """One allocation: its bytes, its number in order, and its buffers by identity."""

    __slots__ = ("holders", "number", "size")

    def __init__(self, size: int, number: int) -> None:
        self.size = size
        self.number = number
        self.holders: dict[int, _Holder] = {}


class _Holder(ref[Any]):
    """A weak reference to a buffer or tensor, with the key of its memory and its identity."""

    __slots__ = ("identity", "key")

    key: Key
    identity: int


class Allocations:
    """The counted allocations that are still in use.

    ``bytes`` are those in use now, ``peak`` the maximum so far.
    """

    def __init__(self) -> None:
        self.peak: int = 0
        self._bytes = 0
        self._pieces: dict[Key, _Piece] = {}
        self._numbers = itertools.count(1)
        self._last = 0
        # Filled when a buffer is freed, in any thread, by C code, which no interrupt disturbs;
        # emptied under the lock.
        self._dead: deque[_Holder] = deque()
        self._watched: dict[int, _Holder] = {}  # tensors instead of buffers
        self._lock = Lock()

    @property
    def bytes(self) -> int:
        """The bytes in use now."""
        with self._lock:
            self._remove_dead()
            return self._bytes

    def mark(self) -> int:
        """Return the number of the last allocation counted so far."""
        return self._last

    def count(
        self, outputs: Iterable[Tensor], inputs: Iterable[Tensor] = (), since: int = 0
    ) -> int:
        """Count the memory of ``outputs``, except for memory of ``inputs``.

        Returns the bytes of the outputs' allocations that were counted after the mark ``since``.
        """
        with self._lock:
            self._remove_dead()
            old = {key for key, _, _ in map(_allocation, inputs)}
            fresh: dict[Key, int] = {}
            for tensor in outputs:
                key, buffer, size = _allocation(tensor)
                if buffer is None:
                    continue
                piece = self._pieces.get(key)
                if piece is None:
                    if key in old:
                        continue  # a view of an input
                    self._last = next(self._numbers)
                    piece = self._pieces[key] = _Piece(size, self._last)
                    self._bytes += size
                self._hold(key, piece, tensor, buffer)
                if piece.number > since:
                    fresh[key] = piece.size
            self.peak = max(self.peak, self._bytes)
            return sum(fresh.values())

    def holds(self, tensor: Tensor) -> bool:
        """Return whether the memory of a tensor was counted; False if it is disposed."""
        with self._lock:
            self._remove_dead()
            return _allocation(tensor)[0] in self._pieces

    def _hold(self, key: Key, piece: _Piece, tensor: Tensor, buffer: Any) -> None:
        # An identity is reused only after its old buffer was removed.
        if id(buffer) in piece.holders or id(tensor) in piece.holders:
            return
        held: Any = buffer
        try:
            holder = _Holder(buffer, self._dead.append)
        except TypeError:
            held, holder = tensor, _Holder(tensor, self._dead.append)
            self._watched[id(tensor)] = holder
        holder.key, holder.identity = key, id(held)
        piece.holders[id(held)] = holder

    def _remove_dead(self) -> None:
        """Remove freed buffers, before their memory is counted for others."""
        for holder in list(self._watched.values()):
            tensor = holder()
            if tensor is not None and tensor.is_disposed:
                self._dead.append(holder)
        while self._dead:
            holder = self._dead.popleft()
            self._watched.pop(holder.identity, None)
            piece = self._pieces.get(holder.key)
            if piece is None or piece.holders.pop(holder.identity, None) is None or piece.holders:
                continue
            del self._pieces[holder.key]
            self._bytes -= piece.size


def _allocation(tensor: Tensor) -> tuple[Key, Any, int]:
    """Return the key, the buffer and the bytes of a tensor's memory; no buffer if it is gone."""
    placement: Any = tensor._placement
    device, buffer = placement.device, tensor._buffer
    # Another thread may dispose of the tensor at any moment.
    if buffer is None or device is None or device.closed:
        return (0, None), None, 0
    name, size = device.backend.allocation(buffer)
    return (id(device), name), buffer, size
