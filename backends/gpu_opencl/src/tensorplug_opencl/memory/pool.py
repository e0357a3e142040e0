"""Device memory: a pool of pyopencl's, under a limit, and the error when memory runs out."""

from __future__ import annotations

import gc
import os
import re
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pyopencl as cl
from pyopencl.tools import ImmediateAllocator, MemoryPool

from tensorplug.plugin import BackendMemoryError, SettingsError, TensorType, live_objects
from tensorplug_opencl import faults
from tensorplug_opencl.memory.buffers import DeviceBuffer
from tensorplug_opencl.memory.shared_memory import SharedPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyopencl.tools import PooledBuffer, PooledSVM

    Pooled = PooledBuffer | PooledSVM


LIMIT: Final = "TENSORPLUG_OPENCL_MEMORY_LIMIT"
SPARE: Final = 64 << 20  # bytes kept for reuse, beside twice what tensors had at most
SHOWN: Final = 5  # the largest tensors in a message

_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(i?b)?|b)?", re.IGNORECASE)
_POWERS: Final = " kmgt"


def parse_limit(text: str) -> int | None:
    """Return the limit in bytes that ``text``, the variable's value, sets; None for no limit.

    ``text`` is a number of bytes, or one with a unit: ``512MiB`` or ``512M`` in powers of 1024,
    ``2GB`` in powers of 1000.

    Raises:
        SettingsError: it is anything else, or less than a byte.

    """
    if not text.strip():
        return None
    match = _SIZE.fullmatch(text.strip())
    if match:
        number, unit, suffix = match.groups()
        base = 1000 if (suffix or "").lower() == "b" else 1024
        nbytes = int(float(number) * base ** _POWERS.index((unit or " ").lower()))
        if nbytes > 0:
            return nbytes
    raise SettingsError(
        f"{LIMIT}={text!r}: must be a number of bytes, at least 1, or one with a unit: 512MiB, 2G"
    )


class Memory:
    """The memory of one device: in use by tensors, or kept for reuse; ``shared`` with the host?

    All work goes to one in-order queue, so the pool may reuse a freed piece at once: work that
    still reads it was enqueued earlier. Shared memory is also freed in ``queue``, so that work in
    another one has to be done: ``wait_if_measuring`` waits for it.
    """

    def __init__(
        self,
        queue: cl.CommandQueue,
        health: faults.Health,
        wait: Callable[[], None],
        wait_if_measuring: Callable[[], None],
        *,
        shared: bool,
    ) -> None:
        self.limit = parse_limit(os.environ.get(LIMIT, ""))
        self.pool: MemoryPool | SharedPool = (
            SharedPool(queue) if shared else MemoryPool(ImmediateAllocator(queue))
        )
        self._queue = queue
        self._health, self._name = health, health.name
        self._wait = wait  # for all of the device's work
        self._wait_if_measuring = wait_if_measuring
        self._lock = threading.RLock()
        self._most = 0  # bytes that tensors had

    def allocate(self, nbytes: int) -> Pooled:
        """Return ``nbytes`` (at least 1) of device memory.

        Raises:
            BackendMemoryError: when there is no room, even after everything unused was freed.
            DeviceLostError: when the device is gone.

        """
        try:
            if self.limit is None:
                return self.pool.allocate(nbytes)
            return self._allocate_within(self.limit, nbytes)
        except (cl.Error, MemoryError) as error:
            return self._allocate_again(nbytes, error)

    def _allocate_within(self, limit: int, nbytes: int) -> Pooled:
        pool = self.pool
        needed = pool.alloc_size(pool.bin_number(nbytes))
        with self._lock:
            if pool.managed_bytes + needed > limit:
                self._wait_if_measuring()
                pool.free_held()
                if pool.managed_bytes + needed > limit:
                    raise MemoryError(f"{LIMIT} allows {limit:,} bytes")
            return pool.allocate(nbytes)

    def _allocate_again(self, nbytes: int, first: cl.Error | MemoryError) -> Pooled:
        if isinstance(first, cl.Error) and not faults.is_memory(first):
            raise self._health.translate(first, "allocating memory") from first
        if gc.isenabled():
            gc.collect()  # frees tensors in reference cycles
        held = self.pool.managed_bytes - self.pool.active_bytes
        self.trim()
        try:
            if self.limit is None:
                return self.pool.allocate(nbytes)
            return self._allocate_within(self.limit, nbytes)
        except (cl.Error, MemoryError) as error:
            raise self._explain(nbytes, held, error) from error

    def _explain(
        self, nbytes: int, held: int, error: cl.Error | MemoryError
    ) -> BackendMemoryError:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        device = self._queue.device
        largest = "; ".join(self.find_largest())
        return BackendMemoryError(
            f"{self._name} has no room for {nbytes:,} bytes: tensors hold "
            f"{self.pool.active_bytes:,} bytes, and the {held:,} bytes kept for reuse were freed "
            f"first ({reason}). The device has {device.global_mem_size:,} bytes, and allows "
            f"at most {device.max_mem_alloc_size:,} in one piece"
            + (f". The largest tensors are {largest}" if largest else "")
        )

    def find_largest(self) -> list[str]:
        """Return the types that use most memory, the largest first."""
        kinds = Counter(self._find_types())
        sizes = sorted(kinds, key=lambda kind: kind.nbytes * kinds[kind], reverse=True)
        return [
            f"{size} ({kinds[size]} of {size.nbytes:,} bytes)"
            if kinds[size] > 1
            else f"{size} ({size.nbytes:,} bytes)"
            for size in sizes[:SHOWN]
        ]

    def _find_types(self) -> Iterator[TensorType]:
        """Return for each piece of memory the type of its largest view."""
        by_memory: dict[int, DeviceBuffer] = {}
        for candidate in live_objects(DeviceBuffer):
            memory = getattr(candidate, "memory", None)
            complete = getattr(candidate, "shape", None) is not None
            if memory is None or not complete or not self._owns(memory):
                continue
            before = by_memory.get(id(memory))
            if before is None or before.type.nbytes < candidate.type.nbytes:
                by_memory[id(memory)] = candidate
        return (buffer.type for buffer in by_memory.values())

    def _owns(self, memory: Any) -> bool:
        """Return whether ``memory`` belongs to this device, as opened here."""
        context = getattr(memory, "context", None) or memory._queue.context  # shared memory
        return bool(context == self._queue.context)

    def trim(self) -> int:
        """Return the memory kept for reuse to the device; return how many bytes it was.

        This waits for the device, which does not free memory that it still uses.
        """
        self._wait()
        before = self.pool.managed_bytes
        self.pool.free_held()
        return before - self.pool.managed_bytes

    def trim_excess(self) -> None:
        """Trim if far more is kept than tensors need, as after tensors of many sizes."""
        active = self.pool.active_bytes
        self._most = max(self._most, active)
        if self.pool.managed_bytes - active > SPARE + 2 * self._most:
            self.trim()

    def settle(self) -> None:
        """Wait until new memory is really allocated; the pool enqueues this."""
        self._queue.finish()

    def measure(self) -> Mapping[str, int]:
        """Return the bytes and blocks in use by tensors and kept for reuse."""
        pool = self.pool
        active, managed = pool.active_bytes, pool.managed_bytes
        limit = {} if self.limit is None else {"limit_bytes": self.limit}
        return {
            "active_bytes": active,
            "held_bytes": managed - active,
            "active_blocks": pool.active_blocks,
            "held_blocks": pool.held_blocks,
            **limit,
        }
