"""Uploads that do not wait: arrays are copied once on the host.

The host memory of an enqueued copy must stay valid until the copy is done. If the device has
separate memory, small and medium copies lie in pinned memory, which its driver reads directly, at
the full rate of the bus. Other copies lie in memory from NumPy.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyopencl as cl

if TYPE_CHECKING:
    from collections.abc import Callable

    HostArray = np.ndarray[Any, Any]
    Enqueue = Callable[[cl.CommandQueue, HostArray], cl.Event]


WAITING_BYTES: Final = 256 << 20  # of unfinished copies; beyond that, wait for the oldest
SHARED_BYTES: Final = 4 << 20  # the same, where the device has the host's memory
SMALLEST_BLOCK: Final = 64 << 10
LARGEST_BLOCK: Final = 16 << 20
PINNED_BYTES: Final = 64 << 20  # in total: other programs cannot use pinned memory


class _Block:
    """A piece of pinned memory, mapped permanently."""

    __slots__ = ("bytes", "memory")

    def __init__(self, queue: cl.CommandQueue, nbytes: int) -> None:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
        self.memory = cl.Buffer(queue.context, flags, nbytes)
        both: Any = cl.map_flags.READ | cl.map_flags.WRITE
        byte: Any = np.uint8
        self.bytes: HostArray = cl.enqueue_map_buffer(
            queue, self.memory, both, 0, (nbytes,), byte
        )[0]


class _Copy(NamedTuple):
    """An unfinished copy: its event, which waits when it is destroyed, and its source."""

    event: cl.Event
    source: HostArray
    block: _Block | None


class Staging:
    """The unfinished copies of one runtime; used under the runtime's lock."""

    def __init__(self, context: cl.Context, device: cl.Device) -> None:
        self._context = context
        self._device = device
        self.pins = self.separate = not device.host_unified_memory
        self._mapping: cl.CommandQueue | None = None  # mapping in the runtime's queue would wait
        self._free: dict[int, list[_Block]] = {}
        self._pinned = 0
        self._waiting: deque[_Copy] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def has_room(self, nbytes: int) -> bool:
        """Return whether a copy of ``nbytes`` would leave unfinished copies within bounds."""
        return self._bytes + nbytes <= (WAITING_BYTES if self.separate else SHARED_BYTES)

    def send(
        self, queue: cl.CommandQueue, enqueue: Enqueue, host: HostArray, *, owned: bool
    ) -> cl.Event:
        """Enqueue a copy of contiguous ``host``, which ``enqueue`` does.

        ``owned``: nothing else can write to ``host``.
        """
        self.retire()
        while not self.has_room(host.nbytes) and (waiting := list(self._waiting)):
            waiting[0].event.wait()
            self.retire()
        block = None if owned else self._block(host.nbytes)
        if block is not None:
            source = block.bytes[: host.nbytes]
            source[:] = host.reshape(-1).view(np.uint8)
        else:
            source = host if owned else host.copy()
        event = enqueue(queue, source)
        queue.flush()
        self._waiting.append(_Copy(event, source, block))
        self._bytes += host.nbytes
        return event

    def retire(self) -> None:
        """Release the copies that are done: the oldest, since the queue is in order."""
        done = cl.command_execution_status.COMPLETE
        while True:
            try:  # taken out first: a signal handler that uploads must not release it as well
                copy = self._waiting.popleft()
            except IndexError:
                return
            status: Any = copy.event.get_info(cl.event_info.COMMAND_EXECUTION_STATUS)
            if status > done:
                self._waiting.appendleft(copy)
                return  # below: it failed, and waiting for the queue raises
            self._bytes -= copy.source.nbytes
            if copy.block is not None:
                self._free.setdefault(copy.block.bytes.nbytes, []).append(copy.block)

    def _block(self, nbytes: int) -> _Block | None:
        """Return pinned memory of at least ``nbytes``; None if the copy should not use any."""
        size = max(SMALLEST_BLOCK, 1 << (nbytes - 1).bit_length())
        if not self.pins or size > LARGEST_BLOCK:
            return None
        free = self._free.get(size)
        if free:
            return free.pop()
        if self._pinned + size > PINNED_BYTES:
            return None
        if self._mapping is None:
            self._mapping = cl.CommandQueue(self._context, self._device)
        try:
            block = _Block(self._mapping, size)
        except cl.Error:
            self.pins = False  # the driver cannot pin memory; plain memory works as well
            return None
        self._pinned += size
        return block
