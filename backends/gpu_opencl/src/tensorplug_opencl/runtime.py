"""All that talks to an opened device: memory, programs, launches and transfers.

All work goes to one in-order queue, so the pool may reuse a freed piece of memory at once: work
that still reads it was enqueued earlier. Only ``read`` and ``synchronize`` wait. One lock is held
while work is enqueued.
"""

from __future__ import annotations

import os
import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl

from tensorplug.plugin import DeviceLostError, KernelRefusedError, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl import faults
from tensorplug_opencl.launch import HEAVY_GROUP, LIGHT_GROUP, Launch, choose_group
from tensorplug_opencl.machine.features import ATOMICS64, describe
from tensorplug_opencl.machine.limits import NONE as NO_LIMITS
from tensorplug_opencl.machine.limits import STEPS, TRIED_LATER
from tensorplug_opencl.measuring import Measurements
from tensorplug_opencl.memory import shared_memory
from tensorplug_opencl.memory.buffers import DeviceBuffer
from tensorplug_opencl.memory.pool import Memory
from tensorplug_opencl.memory.staging import Staging
from tensorplug_opencl.programs.program import Programs, read_title

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_loops.machine import Machine
    from tensorplug_opencl.machine.limits import Limits
    from tensorplug_opencl.memory.pool import Pooled
    from tensorplug_opencl.programs.program import Build

__all__ = ["LIGHT_GROUP", "Launch", "Runtime"]

HostArray = np.ndarray[Any, Any]


class _Process:
    """The id of this process; asking the system at every allocation would double its cost."""

    pid = os.getpid()

    @classmethod
    def refresh(cls) -> None:
        cls.pid = os.getpid()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_Process.refresh)


class Runtime:
    """An opened device: its context, queue, memory and built programs.

    ``shares_memory``: whether the host can use the memory of buffers that are not small.
    ``last`` is the event of the work enqueued last. While ``measuring``, events are recorded.
    ``limits`` are those known so far; ``finish`` tries what is left, and returns all. ``build``
    builds programs in another process. ``lanes`` of registers, by C type, are known once asked
    for.
    """

    def __init__(
        self,
        device: cl.Device,
        limits: Limits = NO_LIMITS,
        finish: Callable[[], Limits] | None = None,
        build: Build | None = None,
    ) -> None:
        self.device, self.limits = device, limits
        self.lanes: dict[str, int] = {}
        self._finish_trial = finish
        self._finished_late = False  # so the backend has dtypes that may have failed
        self.name = describe(device)
        self.pid, self.health = _Process.pid, faults.Health(self.name)
        try:
            self.context = cl.Context([device])
            self.queue = cl.CommandQueue(self.context, device)
            self.shares_memory = limits.shared_memory and shared_memory.is_offered(device)
            self.memory = Memory(
                self.queue,
                self.health,
                self.synchronize,
                self._wait_if_measuring,
                shared=self.shares_memory,
            )
        except cl.Error as error:
            raise self.health.translate(error, "opening the device") from error
        self.lock = threading.RLock()  # re-entrant: signal handlers and finalizers may run kernels
        self.last: cl.Event | None = None
        self.measuring = False
        self.measurements = Measurements(self)
        self.staging = Staging(self.context, device)
        keeps = limits.binaries
        self.programs = Programs(self.context, device, self.health, keeps=keeps, elsewhere=build)
        # Programs for CPUs have few work-items with long loops.
        self.is_cpu = bool(device.type & cl.device_type.CPU) and limits.long_loops
        self.parallel_items = device.max_compute_units * (512 if self.is_cpu else 2048)

    # The trial ------------------------------------------------------------------------

    @property
    def has_atomics64(self) -> bool:
        """Whether programs may use atomics on 64-bit integers."""
        if ATOMICS64 not in self.device.extensions.split():
            return False
        self.finish_trial()
        return self.limits.atomics64

    @property
    def is_tried(self) -> bool:
        """Whether nothing is left of the trial."""
        return self._finish_trial is None

    @cached_property
    def description(self) -> Machine:
        """The device, as schedules of loops see it; they may use whatever it has."""
        from tensorplug_opencl.machine.description import describe_loops  # late: few need it

        self.finish_trial()
        has = self.has_atomics64
        return describe_loops(self.device, self.limits, is_cpu=self.is_cpu, atomics64=has)

    def finish_trial(self) -> None:
        """Try what is left of the trial, before something needs it.

        Raises:
            BackendUnavailableError: the device is unsound.

        """
        if self._finish_trial is None:
            return
        with self.lock:  # the others wait
            if self._finish_trial is not None:
                self.limits = self._finish_trial()
                self.lanes.clear()
                self._finished_late = True
                self._finish_trial = None

    def _check_tried(self, source: str) -> None:
        """Finish the trial if ``source`` has constructs that were not tried yet.

        Raises:
            KernelRefusedError: the driver has just failed on one of them.

        """
        if self._finish_trial is not None and TRIED_LATER.search(source):
            self.finish_trial()
        if self._finished_late:
            self.limits.check(source)

    def check_steps(self, steps: int) -> None:
        """Check that the device can take so many steps of a loop in a work-item.

        Raises:
            KernelRefusedError: its trial has shown that it cannot.

        """
        if not self.limits.long_loops and steps > STEPS:
            raise KernelRefusedError(
                f"a work-item would take {steps:,} steps of a loop, and the driver's trial has "
                f"shown that it does not finish loops of more than {STEPS:,}"
            )

    # Memory ---------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> Pooled:
        """Return ``nbytes`` (at least 1) of device memory from the pool.

        Raises:
            BackendMemoryError: when there is no room, even after the pool was emptied.
            DeviceLostError: when the device is gone, or this is a forked child.

        """
        if self.pid != _Process.pid:
            raise self._explain_fork()
        memory = self.memory.allocate(nbytes)
        if self.measuring:
            self.memory.settle()
        return memory

    def empty(self, type_: TensorType) -> DeviceBuffer:
        """Return a buffer of ``type_`` whose contents are still to be written."""
        nbytes = type_.nbytes
        memory = self.allocate(nbytes) if nbytes else None
        return DeviceBuffer(memory, type_.dtype, type_.shape, 0, nbytes)

    def prepare_empty(self, type_: TensorType) -> Callable[[], DeviceBuffer]:
        """Return a function that does ``empty(type_)``, with its constants computed once."""
        nbytes, dtype, shape = type_.nbytes, type_.dtype, type_.shape
        if not nbytes:
            return lambda: DeviceBuffer(None, dtype, shape)
        self.memory.trim_excess()
        allocate = self.allocate
        return lambda: DeviceBuffer(allocate(nbytes), dtype, shape, 0, nbytes)

    def upload_table(self, host: HostArray) -> DeviceBuffer:
        """Return a device copy of ``host`` (not empty), a table that a plan's kernels read.

        Tables lie outside the pool, which counts the memory of tensors.
        """
        self._check_process()
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        try:
            memory = cl.Buffer(self.context, flags, hostbuf=np.ascontiguousarray(host))
        except cl.Error as error:
            raise self.health.translate(error, "copying a table") from error
        return DeviceBuffer(memory, dt.of(host.dtype), host.shape, 0, host.nbytes)

    def _check_process(self) -> None:
        if self.pid != _Process.pid:
            raise self._explain_fork()

    def _explain_fork(self) -> DeviceLostError:
        return DeviceLostError(
            f"{self.name} was opened by process {self.pid}; a forked child cannot use it. "
            "Start processes with the 'spawn' method, or open the backend anew in the child: "
            "tp.remove_backend, then tp.set_backend"
        )

    # Transfers ------------------------------------------------------------------------

    def write(self, array: HostArray, buffer: DeviceBuffer) -> None:
        """Copy ``array`` into ``buffer``; it may be changed once this returns.

        While the device is busy, the copy joins the queue; large ones to shared memory wait.
        """
        if buffer.memory is not None:
            self._call("copying to the device", self._write, array, buffer)

    def _write(self, array: HostArray, buffer: DeviceBuffer) -> None:
        if buffer.is_shared and (self._is_idle() or not self.staging.has_room(array.nbytes)):
            self._settle()
            buffer.map()[...] = array
            return
        host = np.ascontiguousarray(array)
        memory: Any = buffer.memory
        at = buffer.offset * buffer.dtype.itemsize

        def enqueue(queue: cl.CommandQueue, source: HostArray, *, wait: bool = False) -> cl.Event:
            if buffer.is_shared:
                return cl.enqueue_copy(queue, cl.SVM(buffer.map()), source, is_blocking=wait)
            return cl.enqueue_copy(queue, memory, source, dst_offset=at, is_blocking=wait)

        with self.lock:
            queue = self.queue
            if not self._is_idle():
                owned = not np.may_share_memory(host, array)
                self.last = self.staging.send(queue, enqueue, host, owned=owned)
                self._join(queue)
                return
        enqueue(queue, host, wait=True)

    def _join(self, queue: cl.CommandQueue) -> None:
        """Put the work in ``queue`` before further work, if a signal handler measured meanwhile.

        Measurements replace the runtime's queue, and ``queue`` was the runtime's before.
        """
        if self.queue is not queue:
            self.measurements.order(queue, self.queue)

    def _is_idle(self) -> bool:
        """Return whether all work is done; if so, the host may use what it has written."""
        last = self.last
        if last is None:
            return True
        status = last.get_info(cl.event_info.COMMAND_EXECUTION_STATUS)
        if status != cl.command_execution_status.COMPLETE:
            return False
        last.wait()  # asking does not order the host's reads after the device's writes
        return True

    def read(self, buffer: DeviceBuffer) -> HostArray:
        """Return ``buffer``'s elements, once all work before it is done.

        A read-only view of memory that the host shares, otherwise a copy.
        """
        if buffer.is_shared:
            self._call("waiting for the device", self._settle)
            elements = buffer.map()
            elements.flags.writeable = False
            return elements
        host: HostArray = np.empty(buffer.shape, buffer.dtype.numpy)
        if buffer.memory is not None:
            at = buffer.offset * buffer.dtype.itemsize
            self._call("copying from the device", self._read, host, buffer.memory, at)
        return host

    def _settle(self) -> None:
        if not self._is_idle():
            self._finish()

    def _read(self, host: HostArray, memory: Any, at: int) -> None:
        cl.enqueue_copy(self.queue, host, memory, src_offset=at, is_blocking=True)

    def fill(self, buffer: DeviceBuffer, value: HostArray) -> None:
        """Set all elements of ``buffer`` to ``value``, an array of rank 0 of its dtype."""
        if buffer.memory is not None:
            self._call("filling memory", self._fill, buffer, value)

    def _fill(self, buffer: DeviceBuffer, value: HostArray) -> None:
        memory: Any = buffer.memory
        with self.lock:
            queue = self.queue
            if buffer.is_shared:  # pyopencl ignores a number of bytes: a view has its own
                event = cl.enqueue_svm_memfill(queue, cl.SVM(buffer.map()), value)
            else:
                event = cl.enqueue_fill_buffer(queue, memory, value, 0, buffer.type.nbytes)
            self.last = event
            self._join(queue)
            if self.measuring:
                self.measurements.record(event)

    def synchronize(self) -> None:
        """Wait until all work is done.

        Raises:
            DeviceLostError, BackendMemoryError: work submitted earlier failed.

        """
        self._call("waiting for the device", self._finish)

    def _wait_if_measuring(self) -> None:
        if self.measuring:
            self.synchronize()

    def _finish(self) -> None:
        self.queue.finish()
        with self.lock:
            self.staging.retire()

    def _call(self, action: str, function: Callable[..., None], *args: Any) -> None:
        self._check_process()
        self.translate(action, function, *args)

    def translate(self, action: str, function: Callable[..., None], *args: Any) -> None:
        """Call ``function``, and translate OpenCL's errors for the user."""
        try:
            function(*args)
        except cl.Error as error:
            raise self.health.translate(error, action) from error

    def close(self) -> None:
        """Wait for the queue and free the pool's memory; in a forked child do nothing."""
        if self.pid == _Process.pid:
            try:
                self.synchronize()
            finally:
                self.memory.pool.stop_holding()

    # Launches -------------------------------------------------------------------------

    def launch(
        self,
        source: str,
        arrays: int,
        constants: Sequence[HostArray | np.generic],
        items: int,
        *,
        heavy: bool = False,
        group: int | None = None,
    ) -> Launch:
        """Return kernel ``run`` of program ``source`` with everything set but its arrays.

        The kernel takes ``arrays`` pairs of (pointer, ``long`` offset in elements), then
        ``constants``. ``items`` is the number of work-items needed; the kernel must ignore those
        that fill the last group. ``heavy``: each work-item does a lot. ``group``: the size of
        groups whose work-items cooperate; the program need not be correct for any other size.

        Raises:
            BuildError: when the device's compiler refuses the program.
            KernelRefusedError: when the device does not allow groups of this size, or lacks the
                local memory for them.
            TypeError: when the number of arguments is wrong.

        """
        self._check_process()
        if source not in self.programs and (self._finish_trial or self._finished_late):
            self._check_tried(source)
        title = read_title(source)
        try:
            launch = Launch(self, source, title, arrays, constants, items)
            preferred = HEAVY_GROUP[self.is_cpu] if heavy else LIGHT_GROUP
            groups = self.programs.find_groups(source)
            size = groups.get((preferred, group), 0)
            if not size:
                size = choose_group(self.device, launch.kernel, title, preferred, group)
                groups[preferred, group] = size
        except cl.Error as error:
            raise self.health.translate(error, f"preparing {title!r}") from error
        launch.form_groups(size, fixed=group is not None)
        if self.programs.is_untried(source):
            launch.guard_first_run()
        return launch
