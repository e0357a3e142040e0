"""The one place that talks to an opened device: memory, programs, launches and transfers.

All work goes to one in-order queue, so a piece of memory given back to the pool may be reused
at once: what still reads it was enqueued earlier. Nothing waits but ``read``, ``write`` and
``synchronize``. Errors of OpenCL are translated here and nowhere else.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyopencl as cl
from pyopencl.tools import ImmediateAllocator, MemoryPool

from tensorplug.errors import DeviceLostError
from tensorplug_opencl import faults
from tensorplug_opencl.buffers import DeviceBuffer
from tensorplug_opencl.device import describe
from tensorplug_opencl.program import Programs, title_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyopencl.tools import PooledBuffer

    from tensorplug.spec import TensorType

__all__ = ["Launch", "Runtime"]

HostArray = np.ndarray[Any, Any]

# Work-items per group, for items that do little and for those that loop. PoCL compiles a kernel
# again for every new group size, so they are fixed, and runs a group on one core, so that
# groups of long items must be small. GPUs want no fewer than 64.
LIGHT_GROUP: Final = 128
HEAVY_GROUP: Final = {True: 8, False: 64}  # by whether the device is a CPU


class _Process:
    """This process; asking the system at every allocation would double what that costs."""

    pid = os.getpid()

    @classmethod
    def ask(cls) -> None:
        cls.pid = os.getpid()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_Process.ask)


class Runtime:
    """An opened device: its context, queue, memory pool and built programs."""

    def __init__(self, device: cl.Device) -> None:
        self.device = device
        self.name = describe(device)
        self.pid = _Process.pid
        try:
            self.context = cl.Context([device])
            self.queue = cl.CommandQueue(self.context, device)
            self.pool = MemoryPool(ImmediateAllocator(self.queue))
        except cl.Error as error:
            raise faults.translated(error, self.name, "opening the device") from error
        self.programs = Programs(self.context, device, self.name)
        self.is_cpu = bool(device.type & cl.device_type.CPU)
        self.parallel_items = device.max_compute_units * (512 if self.is_cpu else 2048)

    # Memory ---------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> PooledBuffer:
        """Return ``nbytes`` (at least 1) of device memory from the pool.

        Raises:
            BackendMemoryError: when there is no room, even after the pool was emptied.
            DeviceLostError: when the device is gone, or this is a forked child.

        """
        if self.pid != _Process.pid:
            raise self._forked()
        try:
            return self.pool.allocate(nbytes)
        except (cl.Error, MemoryError) as error:
            return self._allocate_again(nbytes, error)

    def _allocate_again(self, nbytes: int, first: cl.Error | MemoryError) -> PooledBuffer:
        if isinstance(first, cl.Error) and not faults.is_memory(first):
            raise faults.translated(first, self.name, "allocating memory") from first
        held = self.pool.managed_bytes - self.pool.active_bytes
        self.pool.free_held()
        try:
            return self.pool.allocate(nbytes)
        except (cl.Error, MemoryError) as error:
            active = self.pool.active_bytes
            raise faults.out_of_memory(error, self.name, nbytes, active, held) from error

    def empty(self, type_: TensorType) -> DeviceBuffer:
        """Return a buffer of ``type_`` whose contents are still to be written."""
        nbytes = type_.nbytes
        memory = self.allocate(nbytes) if nbytes else None
        return DeviceBuffer(memory, type_.dtype, type_.shape)

    def maker(self, type_: TensorType) -> Callable[[], DeviceBuffer]:
        """Return a function that does ``empty(type_)``, with all that can be done once done."""
        nbytes, dtype, shape = type_.nbytes, type_.dtype, type_.shape
        if not nbytes:
            return lambda: DeviceBuffer(None, dtype, shape)
        allocate = self.allocate
        return lambda: DeviceBuffer(allocate(nbytes), dtype, shape)

    def _check_process(self) -> None:
        if self.pid != _Process.pid:
            raise self._forked()

    def _forked(self) -> DeviceLostError:
        return DeviceLostError(
            f"{self.name} was opened by process {self.pid}; a forked child cannot use it. "
            "Start processes with the 'spawn' method, or open the backend in the child only"
        )

    # Transfers ------------------------------------------------------------------------

    def write(self, host: HostArray, buffer: DeviceBuffer) -> None:
        """Copy contiguous ``host`` into ``buffer``; it may be changed once this returns."""
        if buffer.memory is not None:
            self._do(
                "copying to the device", self._copy, buffer, buffer.memory, host, "dst_offset"
            )

    def read(self, buffer: DeviceBuffer) -> HostArray:
        """Return a copy of ``buffer``'s elements, once all work before it is done."""
        host: HostArray = np.empty(buffer.shape, buffer.dtype.numpy)
        if buffer.memory is not None:
            action = "copying from the device"
            self._do(action, self._copy, buffer, host, buffer.memory, "src_offset")
        return host

    def _copy(self, buffer: DeviceBuffer, target: Any, source: Any, side: str) -> None:
        options: dict[str, Any] = {side: buffer.offset * buffer.dtype.itemsize}
        cl.enqueue_copy(self.queue, target, source, is_blocking=True, **options)

    def fill(self, buffer: DeviceBuffer, value: HostArray) -> None:
        """Set all elements of ``buffer`` to ``value``, an array of rank 0 of its dtype."""
        if buffer.memory is not None:
            nbytes = buffer.type.nbytes
            self._do("filling memory", self._fill, buffer.memory, value, nbytes)

    def _fill(self, memory: PooledBuffer, value: HostArray, nbytes: int) -> None:
        cl.enqueue_fill_buffer(self.queue, memory, value, 0, nbytes)

    def synchronize(self) -> None:
        """Wait until all work is done.

        Raises:
            DeviceLostError, BackendMemoryError: what became of work submitted earlier.

        """
        self._do("waiting for the device", self.queue.finish)

    def _do(self, action: str, function: Callable[..., None], *args: Any) -> None:
        self._check_process()
        try:
            function(*args)
        except cl.Error as error:
            raise faults.translated(error, self.name, action) from error

    def close(self) -> None:
        """Wait for the queue and give the pool's memory back; in a forked child do nothing."""
        if self.pid == _Process.pid:
            try:
                self.synchronize()
            finally:
                self.pool.stop_holding()

    # Launches -------------------------------------------------------------------------

    def launch(
        self,
        source: str,
        arrays: int,
        constants: Sequence[HostArray | np.generic],
        items: int,
        *,
        heavy: bool = False,
    ) -> Launch:
        """Return kernel ``run`` of program ``source`` with everything set but its arrays.

        The kernel takes ``arrays`` pairs of (pointer, ``long`` offset in elements), then
        ``constants``. ``items`` is the number of work-items needed; the kernel itself must
        ignore those by which it is rounded up. ``heavy``: each of them does a lot.

        Raises:
            BuildError: when the device's compiler refuses the program.
            TypeError: when the kernel takes another number of arguments.

        """
        self._check_process()
        kernel = self.programs.kernel(source)
        title = title_of(source)
        try:
            if kernel.num_args != 2 * arrays + len(constants):
                raise TypeError(
                    f"program {title!r} takes {kernel.num_args} arguments, but there are "
                    f"2 for each of {arrays} arrays and {len(constants)} constants"
                )
            for number in range(arrays):
                kernel.set_arg(2 * number + 1, np.int64(0))
            for number, constant in enumerate(constants, start=2 * arrays):
                kernel.set_arg(number, constant)
        except cl.Error as error:
            action = f"setting the arguments of {title!r}"
            raise faults.translated(error, self.name, action) from error
        wanted = HEAVY_GROUP[self.is_cpu] if heavy else LIGHT_GROUP
        group = min(wanted, self.device.max_work_group_size)
        return Launch(self, kernel, title, arrays, -(-items // group) * group, group)

    def retry_launch(self, launch: Launch, error: cl.Error) -> None:
        """Try ``launch`` once more with the pool emptied, if it failed for want of memory."""
        action = f"running {launch.title!r}"
        if not faults.is_memory(error):
            raise faults.translated(error, self.name, action) from error
        self.pool.free_held()
        try:
            launch.enqueue()
        except cl.Error as again:
            raise faults.translated(again, self.name, action) from again


class Launch:
    """A kernel whose constants and sizes are fixed: called with buffers, it is enqueued.

    ``clSetKernelArg`` is not thread safe, and arguments must not change before the enqueue
    has read them. So each plan has a kernel object of its own, whose constants stay set, and
    a lock around arguments and enqueue: an uncontended lock costs less than the look-up of a
    kernel per thread, and the queue serializes the threads anyway.
    """

    __slots__ = (
        "_global",
        "_local",
        "_lock",
        "_offsets",
        "_runtime",
        "_set_arg",
        "kernel",
        "title",
    )

    def __init__(
        self, runtime: Runtime, kernel: cl.Kernel, title: str, arrays: int, items: int, group: int
    ) -> None:
        self._runtime = runtime
        self._set_arg: Callable[[int, Any], None] = kernel.set_arg
        self.kernel = kernel
        self.title = title
        self._global = (items,)
        self._local = (group,)
        self._offsets = [0] * arrays  # as last set: setting a scalar costs more than a buffer
        self._lock = threading.Lock()

    def __call__(self, *arrays: DeviceBuffer) -> None:
        """Enqueue the kernel on ``arrays``, in the order of its parameters."""
        set_arg = self._set_arg
        offsets = self._offsets
        with self._lock:
            try:
                for number, array in enumerate(arrays):
                    set_arg(2 * number, array.memory)
                    if array.offset != offsets[number]:
                        set_arg(2 * number + 1, np.int64(array.offset))
                        offsets[number] = array.offset
                self.enqueue()
            except cl.Error as error:
                self._runtime.retry_launch(self, error)

    def enqueue(self) -> None:
        """Enqueue the kernel with the arguments that are set."""
        cl.enqueue_nd_range_kernel(self._runtime.queue, self.kernel, self._global, self._local)
