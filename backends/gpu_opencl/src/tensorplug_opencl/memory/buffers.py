"""A tensor's data: a piece of device memory, read in row-major order."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pyopencl.tools import PooledSVM

from tensorplug.plugin import DType, Shape, TensorType
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyopencl as cl
    from pyopencl.tools import PooledBuffer

    Memory = PooledBuffer | PooledSVM | cl.Buffer


class DeviceBuffer:
    """Elements of one dtype, contiguous in row-major order, from ``offset`` (in elements) on.

    ``memory`` is shared by views that differ in dtype, shape or offset only; it is None for a
    buffer without elements, since OpenCL has no empty buffers. ``capacity``: how many bytes
    of ``memory`` were requested; ``memory.size`` includes what the pool has added.
    """

    __slots__ = ("__weakref__", "capacity", "dtype", "memory", "offset", "shape")

    def __init__(
        self,
        memory: Memory | None,
        dtype: DType,
        shape: Shape,
        offset: int = 0,
        capacity: int = 0,
    ) -> None:
        self.capacity = capacity
        self.memory = memory
        self.dtype = dtype
        self.shape = shape
        self.offset = offset

    def __repr__(self) -> str:
        return f"<DeviceBuffer {self.type} at element {self.offset}>"

    @property
    def type(self) -> TensorType:
        """Dtype and shape."""
        return TensorType(self.dtype, self.shape)

    @property
    def is_shared(self) -> bool:
        """Whether the host can use the memory: it has elements, and is not too small for that."""
        return self.memory.__class__ is PooledSVM

    def map(self) -> np.ndarray[Any, Any]:
        """Return the elements in shared memory, as an array that keeps it alive.

        The device's work on the buffer must be done. ``is_shared`` is true.
        """
        at = self.offset * self.dtype.itemsize
        memory: Any = self.memory
        return np.ndarray(self.shape, self.dtype.numpy, memory.buf, at)

    def view(self, shape: Shape, start: int = 0) -> DeviceBuffer:
        """Return the elements from ``start`` on as ``shape``, sharing the memory."""
        return DeviceBuffer(self.memory, self.dtype, shape, self.offset + start, self.capacity)

    def reinterpret(self, dtype: DType, shape: Shape) -> DeviceBuffer:
        """Return the same bytes as ``shape`` of ``dtype``, sharing the memory.

        An element of ``dtype`` must begin at the first byte.
        """
        offset = self.offset * self.dtype.itemsize // dtype.itemsize
        return DeviceBuffer(self.memory, dtype, shape, offset, self.capacity)


references: Final[Callable[[Any], int]] = getattr(sys, "getrefcount", id)


def _count_of_buffer() -> int:
    memory: Any = object()
    buffer = DeviceBuffer(memory, dt.int8, ())
    del memory
    return references(buffer.memory)


OF_BUFFER: Final = _count_of_buffer()
"""The number of references to memory of one buffer."""
