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

    from tensorplug_opencl.measuring import Measurements
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.memory.pool import Memory
    from tensorplug_opencl.programs.program import Programs


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
_UNKNOWN: Final = -1  # no offset
_info = cl.kernel_work_group_info


def choose_group(
    device: cl.Device, kernel: cl.Kernel, title: str, preferred: int, needed: int | None
) -> int:
    """Return how many work-items of ``kernel`` form a group: ``needed`` or at most ``preferred``.

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
    group = max(1, min(preferred, most))
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

    ``lock`` is held while a command is enqueued: it keeps ``queue`` from being replaced. A launch
    sets ``last``, the event of what was enqueued last; while ``measuring``, it passes the event to
    ``measurements``.
    """

    health: faults.Health
    queue: cl.CommandQueue
    lock: RLock
    last: cl.Event | None
    measuring: bool
    measurements: Measurements
    memory: Memory
    programs: Programs

    def synchronize(self) -> None:
        """Wait until all work is done."""


class _Arguments:
    """A kernel object with its arguments, used by one call at a time.

    ``offsets`` are those of the arrays, as last set.
    """

    __slots__ = ("kernel", "offsets", "set_arg", "set_number")

    def __init__(self, kernel: cl.Kernel, arrays: int, constants: Sequence[Any]) -> None:
        self.kernel = kernel
        self.set_arg: Callable[[int, Any], None] = kernel.set_arg
        self.set_number = bind_setter(kernel)
        self.offsets = [0] * arrays
        for number in range(arrays):
            self.set_number(2 * number + 1, np.int64(0))
        for number, constant in enumerate(constants, start=2 * arrays):
            self.set_number(number, constant)


class Launch:
    """A kernel whose constants and sizes are fixed: called with buffers, it is enqueued.

    Arguments must not change before the enqueue has read them, and a lock does not prevent that:
    a signal handler or a finalizer may call the same launch in the same thread, at any point. So
    each call takes a kernel object out of ``_free``, which nobody else can use until the call puts
    it back. Constants stay set. A call that finds none gets another one, which may be that of
    another launch of the program.
    """

    __slots__ = (
        "__weakref__",
        "_arrays",
        "_constants",
        "_fixed",
        "_free",
        "_items",
        "_runtime",
        "_sizes",
        "_source",
        "_untried",
        "title",
    )

    def __init__(
        self,
        runtime: LaunchContext,
        source: str,
        title: str,
        arrays: int,
        constants: Sequence[Any],
        items: int,
    ) -> None:
        self._runtime = runtime
        self._source = runtime.programs.share_text(source)
        self.title = title
        self._arrays = arrays
        self._constants = tuple(constants)
        self._items = items
        self._untried = False
        self.form_groups(1)
        self._free: list[_Arguments] = []
        kernel = runtime.programs.lend(self, self._source)
        taken = runtime.programs.count_arguments(self._source, kernel)
        if taken != 2 * arrays + len(constants):
            raise TypeError(
                f"program {title!r} takes {taken} arguments, but there are "
                f"2 for each of {arrays} arrays and {len(constants)} constants"
            )
        self._free.append(_Arguments(kernel, arrays, self._constants))

    def guard_first_run(self) -> None:
        """Guard the first call, since no process has run the program to completion."""
        self._untried = True

    @property
    def kernel(self) -> cl.Kernel:
        """An idle kernel object, to ask the driver about it."""
        return self._free[-1].kernel

    def give_up(self) -> cl.Kernel | None:
        """Return an idle kernel object, which this launch forgets; None if it has none."""
        try:
            return self._free.pop().kernel
        except IndexError:
            return None

    @property
    def group(self) -> int:
        """How many work-items form a group."""
        return self._sizes[1][0]

    def form_groups(self, group: int, *, fixed: bool = False) -> None:
        """Set the size of groups; ``fixed``: the kernel is wrong with smaller ones."""
        self._fixed = fixed
        self._sizes = ((-(-self._items // group) * group,), (group,))

    def __call__(self, *arrays: DeviceBuffer) -> None:
        """Enqueue the kernel on ``arrays``, in the order of its parameters."""
        if self._untried:
            self._run_first(arrays)
            return
        free = self._free
        try:
            arguments = free.pop()
        except IndexError:
            arguments = self._make_arguments()
        try:
            self._enqueue_on(arrays, arguments)
        finally:
            free.append(arguments)

    def _make_arguments(self) -> _Arguments:
        """Return another kernel object: calls use this launch's, or other launches took them."""
        kernel = self._runtime.programs.lend(self, self._source)
        try:
            return _Arguments(kernel, self._arrays, self._constants)
        except cl.Error as error:
            raise self._translate(error) from error

    def _enqueue_on(self, arrays: Sequence[DeviceBuffer], arguments: _Arguments) -> None:
        runtime = self._runtime
        set_arg = arguments.set_arg
        offsets = arguments.offsets
        at = 0
        try:
            for number, array in enumerate(arrays):
                set_arg(at, array.memory)
                if array.offset != offsets[number]:
                    offsets[number] = _UNKNOWN  # in case of an interrupt
                    arguments.set_number(at + 1, np.int64(array.offset))
                    offsets[number] = array.offset
                at += 2
        except cl.Error as error:
            raise self._translate(error) from error
        try:
            event = self._enqueue(arguments.kernel)
        except cl.Error as error:
            event = self._retry(arguments.kernel, error)
        if runtime.measuring:
            runtime.measurements.record(event)

    def _enqueue(self, kernel: cl.Kernel) -> cl.Event:
        runtime = self._runtime
        items, group = self._sizes
        with runtime.lock:
            queue = runtime.queue
            event = cl.enqueue_nd_range_kernel(queue, kernel, items, group)
            runtime.last = event
            if runtime.queue is not queue:  # a finalizer measures
                runtime.measurements.order(queue, runtime.queue)
        return event

    def _run_first(self, arrays: Sequence[DeviceBuffer]) -> None:
        """Run the program to completion, for the first time in any process."""
        self._untried = False
        runtime = self._runtime
        with runtime.programs.first_run(self._source):
            self(*arrays)
            runtime.synchronize()

    def _retry(self, kernel: cl.Kernel, error: cl.Error) -> cl.Event:
        """Enqueue again with the pool emptied, then with smaller and smaller groups."""
        if faults.is_memory(error):
            self._runtime.memory.trim()
            try:
                return self._enqueue(kernel)
            except cl.Error as again:
                error = again
        while error.code in _TOO_LARGE and self.group > 1 and not self._fixed:
            self.form_groups(self.group // 2)
            try:
                return self._enqueue(kernel)
            except cl.Error as again:
                error = again
        raise self._translate(error) from error

    def _translate(self, error: cl.Error) -> Exception:
        return self._runtime.health.translate(error, f"running {self.title!r}")
