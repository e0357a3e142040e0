"""Memory that the host shares with a device: fine-grained shared virtual memory (OpenCL 2.0).

A driver for the processor that Python runs on computes in memory that the host can use at the same
addresses. So the host copies nothing to a buffer or from it: it waits for the work before it, and
then reads or writes the elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyopencl as cl
from pyopencl.tools import ImmediateAllocator, MemoryPool, PooledSVM, SVMAllocator, SVMPool

if TYPE_CHECKING:
    from pyopencl.tools import PooledBuffer


# The host may use the memory between the commands of a queue.
FLAGS: Final[Any] = cl.svm_mem_flags.READ_WRITE | cl.svm_mem_flags.SVM_FINE_GRAIN_BUFFER

# Bytes of the smallest piece that is shared. It costs Intel's driver and pyopencl a microsecond
# more per launch than a plain buffer, and saves six per read.
LEAST: Final = 4096


def is_offered(device: cl.Device) -> bool:
    """Return whether ``device`` is the host's processor, and its driver can share memory."""
    if not device.type & cl.device_type.CPU or not device.host_unified_memory:
        return False
    try:
        capabilities = device.svm_capabilities
    except cl.Error:  # before OpenCL 2.0
        return False
    return bool(capabilities & cl.device_svm_capabilities.FINE_GRAIN_BUFFER)


class SharedPool:
    """A ``MemoryPool`` whose pieces from ``LEAST`` bytes on are shared.

    Memory that it gives up is freed after the work that is in ``queue`` then.
    """

    def __init__(self, queue: cl.CommandQueue) -> None:
        context = queue.context
        self._plain = MemoryPool(ImmediateAllocator(queue))
        self._shared = SVMPool(SVMAllocator(context, alignment=0, flags=FLAGS, queue=queue))
        self._most = queue.device.max_mem_alloc_size
        self.alloc_size = self._plain.alloc_size  # both pools round in the same way
        self.bin_number = self._plain.bin_number

    def allocate(self, nbytes: int) -> PooledBuffer | PooledSVM:
        """Return ``nbytes`` (at least 1) of memory.

        Raises:
            MemoryError, cl.Error: the driver has none.

        """
        if nbytes < LEAST:
            return self._plain.allocate(nbytes)
        if nbytes > self._most:  # some drivers give what they do not have
            raise MemoryError(f"the device allows {self._most:,} bytes in one piece")
        memory = self._shared(nbytes)
        if not memory.svm_ptr:  # pyopencl does not notice
            raise MemoryError("the driver returned no memory")
        return memory

    @property
    def active_bytes(self) -> int:
        """Bytes in use."""
        return self._plain.active_bytes + self._shared.active_bytes

    @property
    def managed_bytes(self) -> int:
        """Bytes in use, or kept for reuse."""
        return self._plain.managed_bytes + self._shared.managed_bytes

    @property
    def active_blocks(self) -> int:
        """Pieces in use."""
        return self._plain.active_blocks + self._shared.active_blocks

    @property
    def held_blocks(self) -> int:
        """Pieces kept for reuse."""
        return self._plain.held_blocks + self._shared.held_blocks

    def free_held(self) -> None:
        """Free the pieces kept for reuse."""
        self._plain.free_held()
        self._shared.free_held()

    def stop_holding(self) -> None:
        """Free them, and keep none from now on."""
        self._plain.stop_holding()
        self._shared.stop_holding()
