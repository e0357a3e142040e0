"""A backend in memory that counts its buffers, and fails at a chosen allocation."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np
from tests.core.support.engines import MemoryBackend

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.errors import BackendMemoryError

if TYPE_CHECKING:
    from tensorplug.contract.tables import KernelTable


class Memory:
    """A piece of it."""

    __slots__ = ("__weakref__", "nbytes")

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


class Buffer:
    """An array in a piece of memory; ``memory`` is None without elements, and when freed."""

    __slots__ = ("array", "memory")

    def __init__(self, array: np.ndarray, memory: Memory | None) -> None:
        self.array = array
        self.memory = memory


class CountingBackend(MemoryBackend):
    """Its kernels make buffers with ``make`` and ``view``, and may ``free`` one.

    ``made`` counts them; the one that makes it ``fails_at`` is refused.
    """

    def __init__(self, name: str, dtypes: frozenset[dt.DType] = dt.FIXED) -> None:
        super().__init__(name, dtypes)
        self.live: WeakSet[Memory] = WeakSet()
        self.stopped = 0
        self.made = 0
        self.fails_at = -1

    def make(self, array: Any) -> Buffer:
        array = np.array(array)
        if not array.size:
            return Buffer(array, None)
        self.made += 1
        if self.made == self.fails_at:
            raise BackendMemoryError(f"{self.name} has no room for {array.nbytes} bytes")
        memory = Memory(array.nbytes)
        self.live.add(memory)
        return Buffer(array, memory)

    def view(self, buffer: Buffer, array: np.ndarray) -> Buffer:
        return Buffer(array, buffer.memory)

    def free(self, buffer: Buffer) -> None:
        buffer.memory = None

    def from_host(self, array: np.ndarray) -> Any:
        return self.make(super().from_host(array))

    def to_host(self, buffer: Any) -> np.ndarray:
        return super().to_host(buffer.array)

    def describe(self, buffer: Any) -> TensorType:
        if not isinstance(buffer, Buffer):
            raise TypeError(f"{buffer!r} is no Buffer")
        return TensorType(dt.of(buffer.array.dtype), buffer.array.shape)

    def allocation(self, buffer: Any) -> tuple[int, int]:
        if buffer.memory is None:
            return id(buffer), 0
        return id(buffer.memory), buffer.memory.nbytes

    def live_buffers(self) -> int:
        return len(self.live)

    def counts(self, buffer: Any) -> bool:
        return buffer.memory is not None

    def stop_counting(self) -> None:
        assert not self.closed, "a closed backend was called"
        self.stopped += 1


def counted(table: KernelTable) -> Any:
    """Return the kernels of ``table``, which work on arrays, as kernels of counting backends."""
    return [_counted(entry) for entry in table]


def _counted(entry: Any) -> Any:
    def kernel(*given: Any, backend: CountingBackend, **options: Any) -> Any:
        buffers = [buffer for one in given for buffer in (one if isinstance(one, list) else [one])]
        result = entry.function(*map(_arrays, given), **options)

        def wrapped(array: np.ndarray) -> Buffer:
            shared = [buffer for buffer in buffers if np.shares_memory(buffer.array, array)]
            return backend.view(shared[0], array) if shared else backend.make(array)

        return (
            [wrapped(output) for output in result] if isinstance(result, list) else wrapped(result)
        )

    return dataclasses.replace(entry, function=kernel, asks=(*entry.asks, "backend"))


def _arrays(given: Any) -> Any:
    return [buffer.array for buffer in given] if isinstance(given, list) else given.array
