"""The Backend protocol over one OpenCL device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyopencl.tools import PooledBuffer, PooledSVM

from tensorplug.plugin import DeviceError, DType, Group, TensorType, expressions
from tensorplug_opencl import device as devices
from tensorplug_opencl.memory.buffers import OF_BUFFER, DeviceBuffer, references
from tensorplug_opencl.opened import OpenedDevice

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    import numpy as np

    from tensorplug_loops.templates import Sized
    from tensorplug_opencl.movement.exclusive import ExclusiveBuffer


class OpenCLBackend(OpenedDevice):
    """One OpenCL device, opened. Kernels know its base class."""

    name = "opencl"
    functions = frozenset(expressions.FUNCTIONS)

    @classmethod
    def open(cls, number: str | None) -> OpenCLBackend:
        """Open the device with the number ``wanted`` (see ``device.choose``).

        Raises:
            BackendUnavailableError: when there is no such device, or its driver is unsound.

        """
        chosen = devices.choose(number)
        return cls(chosen.device, chosen.verdict.limits, chosen.finish, chosen.build)

    @property
    def widens(self) -> frozenset[DType]:
        """No dtype: kernels are asked for all, and decline those that they do not compute with."""
        return frozenset()

    @property
    def device(self) -> str:
        """The hardware's name and its platform's."""
        return self.runtime.name

    def to_host(self, buffer: DeviceBuffer) -> np.ndarray[Any, Any]:
        """Return the contents, once all work before is done; callers only read them."""
        return self.runtime.read(buffer)

    def describe(self, buffer: object) -> TensorType:
        """Return the dtype and shape of ``buffer``.

        Raises:
            TypeError: when it is not a DeviceBuffer, or its memory is too small for its type.

        """
        if not isinstance(buffer, DeviceBuffer):
            raise TypeError(f"{type(buffer).__name__} is not a DeviceBuffer")
        type_ = buffer.type
        end = buffer.offset * buffer.dtype.itemsize + type_.nbytes
        if type_.nbytes and end > buffer.capacity:
            raise TypeError(f"{buffer!r} needs {end} bytes, but its memory has {buffer.capacity}")
        return type_

    def allocation(self, buffer: DeviceBuffer) -> tuple[Hashable, int]:
        """Return a key of the memory under ``buffer``, and how many bytes were requested."""
        if buffer.memory is None:
            return id(buffer), 0
        return id(buffer.memory), buffer.capacity

    def live_buffers(self) -> int:
        """Return how many blocks of the pool are in use."""
        return self.runtime.memory.pool.active_blocks

    def counts(self, buffer: DeviceBuffer) -> bool:
        """Return whether ``buffer`` has memory; a buffer without elements has none."""
        return buffer.memory is not None

    def stop_counting(self) -> None:
        """Do nothing: the pool counts anyway."""

    @property
    def least_group(self) -> int:
        """The size of the smallest group: even one element saves the launches of single calls."""
        return 1

    def compile_group(self, group: Group) -> Callable[..., list[DeviceBuffer]] | None:
        """Return a function that computes a group, or None to decline it.

        Raises:
            KernelRefusedError: the same, with the reason, such as too many arguments.

        """
        from tensorplug_loops.templates import sized  # late: loads kernels
        from tensorplug_opencl.groups import loops

        return loops.compile_group(sized(group), self.runtime)

    def compile_form(self, group: Sized) -> Callable[..., list[DeviceBuffer]] | None:
        """Return a function that computes the group of a kernel, or None to decline it."""
        from tensorplug_opencl.groups import loops

        return loops.compile_group(group, self.runtime, form=True)

    def exclusive(self, buffer: DeviceBuffer) -> ExclusiveBuffer | None:
        """Return a copy that one tensor owns; None of a buffer without elements."""
        from tensorplug_opencl.movement.exclusive import ExclusiveBuffer  # late: loads kernels

        return None if buffer.memory is None else ExclusiveBuffer(self.runtime, buffer)

    def owns_memory(self, buffer: DeviceBuffer) -> bool:
        """Return whether the memory is the pool's, and no view or array has it as well."""
        pooled = isinstance(buffer.memory, PooledBuffer | PooledSVM)
        return pooled and references(buffer.memory) == OF_BUFFER

    def explain_loss(self) -> str:
        """Return why the device is lost; "" while it is not."""
        return self.runtime.health.lost

    def inject_fault(self, kind: type[DeviceError]) -> str:
        """Make the next call fail, for tests; return why that cannot be, or ""."""
        from tensorplug_opencl import injection  # late: no program needs it

        return injection.inject(self.runtime, kind)

    def synchronize(self) -> None:
        """Wait until all work submitted so far is done; raise what it raised."""
        self.runtime.synchronize()

    def memory(self) -> Mapping[str, int]:
        """Return bytes and blocks in use and kept for reuse, and the number of programs."""
        return {**self.runtime.memory.measure(), "programs": len(self.runtime.programs)}

    def trim(self) -> int:
        """Return the memory kept for reuse to the device; return how many bytes it was."""
        return self.runtime.memory.trim()

    def measure(self) -> Callable[[], int]:
        """Start to measure the device's own time; the returned function ends it: nanoseconds."""
        return self.runtime.measurements.begin()

    def close(self) -> None:
        """Wait for the queue, and free the memory kept for reuse."""
        self.runtime.close()
