"""The device's memory: buffers of tensors, and a pool from which they come.

Work runs in order, so memory that is free may be used again before the work that read it has run.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import wgpu

from tensorplug.plugin import BackendMemoryError, Lock, TensorType

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import DType, Shape
    from tensorplug_webgpu.faults import Guard

_USAGE: Final = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
_LEAST: Final = 256
_STRIP: Final = 16  # bytes that shaders read at once: sizes are multiples of it
_STEPS: Final = 8  # sizes between a power of two and the next


class Memory:
    """A piece of memory, which goes back to the pool with its last buffer."""

    __slots__ = ("__weakref__", "buffer", "nbytes")

    def __init__(self, buffer: wgpu.GPUBuffer, nbytes: int) -> None:
        self.buffer = buffer
        self.nbytes = nbytes


class Box:
    """The data of a tensor: dense, in row-major order. ``memory``: None if there are none."""

    __slots__ = ("memory", "type")

    def __init__(self, memory: Memory | None, type_: TensorType) -> None:
        self.memory = memory
        self.type = type_

    def reshaped(self, shape: Shape) -> Box:
        """Return the same memory in another shape."""
        return Box(self.memory, TensorType(self.type.dtype, shape))


def bytes_of(dtype: DType, size: int) -> int:
    """Return the bytes of so many elements: a bool is a word, and all are whole words."""
    width = max(dtype.itemsize, 4 if dtype.itemsize == 1 else 2)
    return -(-width * size // 4) * 4


def _rounded(nbytes: int) -> int:
    step = max(_LEAST, (1 << (nbytes - 1).bit_length()) // (2 * _STEPS))
    return -(-nbytes // step) * step


class Pool:
    """Memory of one device by size. ``make_room`` submits what is recorded, then trims."""

    def __init__(self, device: wgpu.GPUDevice, guard: Guard, make_room: Callable[[], int]) -> None:
        self._device = device
        self._guard = guard
        self._make_room = make_room
        limits = device.limits
        most = min(
            limits["max-buffer-size"] - _LEAST,  # SwiftShader makes none of just that size
            limits["max-storage-buffer-binding-size"],
        )
        self.most = most & -_STRIP
        self._free: dict[int, list[wgpu.GPUBuffer]] = defaultdict(list)
        self._lock = Lock()
        self._closed = False
        self.used = self.kept = 0

    def allocate(self, nbytes: int) -> Memory:
        """Return memory with any contents.

        Raises:
            BackendMemoryError: it is more than the device takes, or has.

        """
        size = min(_rounded(nbytes), self.most)
        if nbytes > self.most:
            raise BackendMemoryError(
                f"webgpu: a buffer of {nbytes:,} bytes is more than the adapter's limit of "
                f"{self.most:,}; compute it in parts"
            )
        with self._lock:
            free = self._free[size]
            buffer = free.pop() if free else None
            if buffer is not None:
                self.kept -= size
        if buffer is None:
            buffer = self._create(size)
        with self._lock:
            self.used += size
        memory = Memory(buffer, size)
        weakref.finalize(memory, self._release, buffer, size).atexit = False
        return memory

    def _create(self, size: int) -> Any:
        try:
            with self._guard.using("an allocation"):
                return self._device.create_buffer(size=size, usage=_USAGE)
        except BackendMemoryError as error:
            if not self._make_room():
                raise BackendMemoryError(
                    f"webgpu: no room for {size:,} bytes, {self.used:,} are in use"
                ) from error
            return self._create(size)

    def _release(self, buffer: wgpu.GPUBuffer, size: int) -> None:
        with self._lock:
            self.used -= size
            if self._closed:
                if not self._guard.lost:
                    buffer.destroy()
                return
            self._free[size].append(buffer)
            self.kept += size

    def trim(self) -> int:
        """Give back what is free; return how many bytes."""
        with self._lock:
            released, self.kept = self.kept, 0
            for buffers in self._free.values():
                for buffer in buffers:
                    buffer.destroy()
            self._free.clear()
        return released

    def close(self) -> None:
        """Give back what is free, and what becomes free."""
        with self._lock:
            self._closed = True
            if self._guard.lost:  # it is asked nothing more
                self._free.clear()
                self.kept = 0
            else:
                self.trim()
