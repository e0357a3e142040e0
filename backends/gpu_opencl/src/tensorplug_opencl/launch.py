"""Launches: kernels with everything set but their arrays, and the size of their groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pyopencl as cl

from tensorplug.plugin import KernelRefusedError
from tensorplug_opencl import faults

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import RLock

    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.measuring import Measurements
    from tensorplug_opencl.memory import Memory
    from tensorplug_opencl.program import Programs

__all__ = ["Launch", "LaunchContext", "bind_setter", "choose_group"]

# Work-items per group, for items that do little and for items that loop. PoCL compiles a kernel
# again for every new group size, so the sizes are fixed. It runs a group on one core, so groups of
# long items must be small. GPUs need at least 64.
LIGHT_GROUP: Final = 128
HEAVY_GROUP: Final = {True: 8, False: 64}  # by whether the device is a CPU

_TOO_LARGE: Final = frozenset(
    {
        cl.status_code.INVALID_WORK_GROUP_SIZE,
        cl.status_code.INVALID_WORK_ITEM_SIZE,
        cl.status_code.OUT_OF_RESOURCES,  # NVIDIA's code if a group needs too many registers
    }
)
_info = cl.kernel_work_group_info


def choose_group(
    device: cl.Device, kernel: cl.Kernel, title: str, wanted: int, needed: int | None
) -> int:
    """Return how many work-items of ``kernel`` form a group: ``needed`` or at most ``wanted``.

    A kernel may allow fewer than its device does, because of its registers and local memory. If
    any number is correct, the result is a multiple of what the device runs in lockstep.

    Raises:
        KernelRefusedError: the device does not allow groups of ``needed``, or lacks the local
            memory for them.

    """
    local = kernel.get_work_group_info(_info.LOCAL_MEM_SIZE, device)
    if local > device.local_mem_size:
        raise KernelRefusedError(
            f"{title!r} takes {local:,} bytes of local memory, and the device has "
            f"{device.local_mem_size:,}"
        )
    sizes = device.max_work_item_sizes
    most: int = min(kernel.get_work_group_info(_info.WORK_GROUP_SIZE, device), sizes[0])
    if needed is not None:
        if needed > most:
            raise KernelRefusedError(
                f"{title!r} needs groups of {needed} work-items, and the device allows it {most}"
            )
        return needed
    step: int = kernel.get_work_group_info(_info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE, device)
    group = max(1, min(wanted, most))
    return group - group % step if 0 < step < group else group


def bind_setter(kernel: cl.Kernel) -> Callable[[int, Any], None]:
    """Return the function that sets a number or struct as argument of ``kernel``.

    pyopencl's ``set_arg`` takes 10 microseconds for anything but a buffer, since it first tries
    conversions. The method that its generated code calls takes 0.2.
    """
    direct: Callable[[int, Any], None] = getattr(kernel, "_set_arg_buf", kernel.set_arg)
    return direct


class LaunchContext(Protocol):
    """What a launch needs of the runtime: its queue, and what goes along with enqueuing.

    ``lock`` is held from the first argument to the enqueue. A launch sets ``last``, the event of
    what was enqueued last; while ``measuring``, it passes the event to ``measurements``.
    """

    name: str
    queue: cl.CommandQueue
    lock: RLock
    last: cl.Event | None
    measuring: bool
    measurements: Measurements
    memory: Memory
    programs: Programs

    def synchronize(self) -> None:
        """Wait until all work is done."""


class Launch:
    """A kernel whose constants and sizes are fixed: called with buffers, it is enqueued.

    ``clSetKernelArg`` is not thread safe, and arguments must not change before the enqueue has
    read them. So each plan has a separate kernel object, whose constants stay set, and the
    runtime's lock is held from the first argument to the enqueue: an uncontended lock costs less
    than the look-up of a kernel per thread, and the queue serializes the threads anyway.
    """

    __slots__ = (
        "_fixed",
        "_global",
        "_items",
        "_local",
        "_offsets",
        "_runtime",
        "_set_arg",
        "_set_number",
        "_untried",
        "kernel",
        "title",
    )

    def __init__(
        self, runtime: LaunchContext, kernel: cl.Kernel, title: str, arrays: int, items: int
    ) -> None:
        self._runtime = runtime
        self._set_arg: Callable[[int, Any], None] = kernel.set_arg
        self._set_number = bind_setter(kernel)
        self.kernel = kernel
        self.title = title
        self._items = items
        self._offsets = [0] * arrays  # as last set
        self._untried: str | None = None  # the program, if no process has run it yet
        self.form_groups(1)

    def guard_first_run(self, source: str) -> None:
        """Guard the first call, since no process has run the program ``source`` to completion."""
        self._untried = source

    @property
    def group(self) -> int:
        """How many work-items form a group."""
        return self._local[0]

    def form_groups(self, group: int, *, fixed: bool = False) -> None:
        """Set the size of groups; ``fixed``: the kernel is wrong with smaller ones."""
        self._fixed = fixed
        self._local = (group,)
        self._global = (-(-self._items // group) * group,)

    def set_constants(self, constants: Sequence[Any]) -> None:
        """Set the arguments after the arrays, and the arrays' offsets to 0."""
        arrays = len(self._offsets)
        for number in range(arrays):
            self._set_number(2 * number + 1, np.int64(0))
        for number, constant in enumerate(constants, start=2 * arrays):
            self._set_number(number, constant)

    def __call__(self, *arrays: DeviceBuffer) -> None:
        """Enqueue the kernel on ``arrays``, in the order of its parameters."""
        if self._untried is not None:
            self._run_first(arrays)
            return
        set_arg = self._set_arg
        offsets = self._offsets
        runtime = self._runtime
        with runtime.lock:
            try:
                at = 0
                for number, array in enumerate(arrays):
                    set_arg(at, array.memory)
                    if array.offset != offsets[number]:
                        self._set_number(at + 1, np.int64(array.offset))
                        offsets[number] = array.offset
                    at += 2
                event = cl.enqueue_nd_range_kernel(
                    runtime.queue, self.kernel, self._global, self._local
                )
            except cl.Error as error:
                event = self._retry(error)
            runtime.last = event
            if runtime.measuring:
                runtime.measurements.record(event)

    def _run_first(self, arrays: Sequence[DeviceBuffer]) -> None:
        """Run the program to completion, for the first time in any process."""
        source, self._untried = self._untried, None
        assert source is not None
        runtime = self._runtime
        with runtime.programs.first_run(source):
            self(*arrays)
            runtime.synchronize()

    def _retry(self, error: cl.Error) -> cl.Event:
        """Enqueue again with the pool emptied, then with smaller and smaller groups."""
        runtime = self._runtime
        if faults.is_memory(error):
            runtime.memory.trim()
            try:
                return self._enqueue()
            except cl.Error as again:
                error = again
        while error.code in _TOO_LARGE and self.group > 1 and not self._fixed:
            self.form_groups(self.group // 2)
            try:
                return self._enqueue()
            except cl.Error as again:
                error = again
        raise faults.translate(error, runtime.name, f"running {self.title!r}") from error

    def _enqueue(self) -> cl.Event:
        return cl.enqueue_nd_range_kernel(
            self._runtime.queue, self.kernel, self._global, self._local
        )
