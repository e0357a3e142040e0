"""An opened device: its queue, compiled shaders and launches.

Launches are recorded in one command buffer until something waits for them, or there are many. One
lock is held meanwhile, since a command buffer is recorded by one thread at a time.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakSet

import numpy as np
import wgpu

from tensorplug.plugin import BackendUnavailableError, BuildNotice, KernelRefusedError, Lock
from tensorplug.plugin import dtypes as dt
from tensorplug_loops import extents
from tensorplug_webgpu import adapters, dialect, exchange
from tensorplug_webgpu.faults import Guard
from tensorplug_webgpu.memory import Box, Pool, bytes_of
from tensorplug_webgpu.values import LANES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import TensorType
    from tensorplug_loops.schedule import Launch
    from tensorplug_loops.statements import Kernel

    Array = np.ndarray[Any, Any]

_NOTICE: Final = BuildNotice("webgpu", "shaders")
_MOST: Final = 256  # launches of a command buffer
_PIECE: Final = 1 << 26  # bytes of an upload at once
MOST_KEPT: Final = 512  # compiled shaders; launches keep theirs
_GROUPS: Final = 65_535  # along one axis of a launch
_BUSY_PROCESSOR, _BUSY_GPU = 64, 4096  # work-groups that keep all cores busy
_EACH: Final = 16  # items that a work-item takes, at most
_SHORT: Final = 2048  # instructions of a work-item that takes several items
_GROUP: Final = 256  # work-items of a work-group
_TEAM: Final = 8  # of them, those that reduce a row, where the processor acts as a GPU
_CORES: Final = 16  # adapters do not tell
_STEPS: Final = 65_000  # of a work-item's loops, after which Mesa's processor ends them
_BOUND: Final = 8  # bindings of buffers that a kernel keeps
# Limits that we use as far as the adapter goes.
_LIMITS: Final = (
    "max-buffer-size",
    "max-storage-buffer-binding-size",
    "max-storage-buffers-per-shader-stage",
    "max-compute-workgroup-storage-size",
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-size-x",
)


class _Numbers(NamedTuple):
    """Where a launch's numbers lie: in a shader's text, its bindings, and the queue's buffers."""

    space: str
    binding: str
    usage: int


_UNIFORM: Final = _Numbers("uniform", "uniform", wgpu.BufferUsage.UNIFORM)
_STORED: Final = _Numbers("storage, read", "read-only-storage", wgpu.BufferUsage.STORAGE)


class Runtime:
    """What a backend does with its device; ``exchanged``: how many neighbours exchange values."""

    def __init__(self, adapter: wgpu.GPUAdapter, exchanged: int) -> None:
        self.name = adapters.name_of(adapter)
        self.dtypes = adapters.dtypes_of(adapter)
        half = dt.float16 in self.dtypes
        features = {adapters.HALF, exchange.FEATURE} & set(adapter.features)
        try:
            self._device = adapter.request_device_sync(
                required_features=sorted(features),
                required_limits={name: adapter.limits[name] for name in _LIMITS},
            )
        except RuntimeError as error:
            reason = " ".join(str(error).split())
            raise BackendUnavailableError(f"{self.name} does not open: {reason}") from error
        limits = self._device.limits
        self.guard = Guard(self._device, self.name)
        self.lock = Lock()
        self.pool = Pool(self._device, self.guard, self.make_room)
        usage = wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.STORAGE
        self.nothing = self._device.create_buffer(size=16, usage=usage)  # of empty tensors
        processor = adapters.is_processor(adapter)
        # Mesa's puts uniforms where loops end into the shader, compiles it anew for each launch,
        # and keeps what it has compiled: there, numbers are not uniforms.
        mesa = "llvmpipe" in self.name
        self.machine = dialect.machine(
            half=half,
            cores=_CORES,
            group_size=min(limits["max-compute-invocations-per-workgroup"], _GROUP),
            shared_bytes=limits["max-compute-workgroup-storage-size"],
            team=_TEAM if processor else 0,
            steps=_STEPS if mesa else 0,
            exchange=exchanged,
            strip=LANES if processor else 1,
        )
        self._numbers = _STORED if mesa else _UNIFORM
        self.arrays = limits["max-storage-buffers-per-shader-stage"] - mesa
        self._busy = _BUSY_PROCESSOR if processor else _BUSY_GPU
        self._encoder: Any = None
        self._pass: Any = None
        self._recorded = 0
        self._unfinished = 0  # launches since something waited
        self._texts: OrderedDict[int, tuple[Kernel, str]] = OrderedDict()
        self._pipelines: OrderedDict[str, tuple[Any, Any]] = OrderedDict()
        self._runs: WeakSet[Run] = WeakSet()
        _living.add(self)

    # Transfers -------------------------------------------------------------------------------

    def empty(self, type_: TensorType) -> Box:
        """Return memory of this type, with any contents."""
        size = type_.size
        return Box(self.pool.allocate(bytes_of(type_.dtype, size)) if size else None, type_)

    def write(self, array: Array, box: Box) -> None:
        """Copy an array's elements into a box."""
        if box.memory is None:
            return
        if box.type.dtype is dt.bool_:
            array = array.astype(np.uint32)
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        if data.size % 4:
            data = np.concatenate([data, np.zeros(-data.size % 4, np.uint8)])
        with self.lock:
            self.submit()  # copies run before the next command buffer
            with self.guard.using("an upload"):
                queue = self._device.queue
                for start in range(0, data.size, _PIECE):
                    if start:  # wgpu copies each piece, and frees the copy when it is submitted
                        queue.submit([])
                    queue.write_buffer(box.memory.buffer, start, data[start : start + _PIECE])

    def read(self, box: Box) -> Array:
        """Return a copy of a box's elements, once they are computed."""
        type_ = box.type
        if box.memory is None:
            return np.empty(type_.shape, type_.dtype.numpy)
        with self.lock:
            self.submit()
            nbytes = bytes_of(type_.dtype, type_.size)
            data = self._read(box.memory.buffer, nbytes, f"a download of {type_}")
        words = np.uint32 if type_.dtype is dt.bool_ else type_.dtype.numpy
        elements = np.frombuffer(data, words)[: type_.size].reshape(type_.shape)
        return elements.astype(bool) if type_.dtype is dt.bool_ else elements

    def submit(self) -> None:
        """Start what is recorded."""
        with self.lock:
            if self._encoder is None:
                return
            encoder, self._encoder = self._encoder, None
            ended, self._pass, self._recorded = self._pass, None, 0
            with self.guard.using("a launch"):
                ended.end()
                self._device.queue.submit([encoder.finish()])

    def _read(self, source: wgpu.GPUBuffer, nbytes: int, action: str) -> Any:
        told = f"{action} after {self._unfinished} launches"
        with self.guard.using(told):
            usage = wgpu.BufferUsage.COPY_DST | wgpu.BufferUsage.MAP_READ
            copy = self._device.create_buffer(size=nbytes, usage=usage)
            encoder = self._device.create_command_encoder()
            encoder.copy_buffer_to_buffer(source, 0, copy, 0, nbytes)
            self._device.queue.submit([encoder.finish()])
            self.guard.wait(copy.map_async("READ_NOSYNC"), told)
            self._unfinished = 0
            data = copy.read_mapped()
            copy.destroy()
        return data

    def synchronize(self) -> None:
        """Wait until all work is done; a copy of nothing comes last in the queue."""
        with self.lock:
            self.submit()
            self._read(self.nothing, 16, "waiting")

    def make_room(self) -> int:
        """Give back memory that no buffer uses; return how many bytes."""
        with self.lock:
            self.submit()  # what is recorded uses free memory, too; it is not destroyed before
            return self.pool.trim()

    # Launches --------------------------------------------------------------------------------

    def prepare(self, planned: Launch) -> Run:
        """Return a kernel that is ready to run on boxes.

        Raises:
            KernelRefusedError: indices need more than 32 bits, or there are too many arrays.

        """
        kernel = planned.kernel
        if len(kernel.arrays) > self.arrays:
            raise KernelRefusedError(
                f"{len(kernel.arrays)} arrays are more than the adapter's {self.arrays}"
            )
        if not extents.fit(kernel, planned.numbers, planned.items):
            raise KernelRefusedError("indices do not fit in 32 bits")
        if self.machine.steps and planned.steps > self.machine.steps:
            raise KernelRefusedError(
                f"a loop of {planned.steps:,} steps: Mesa's processor ends one after {_STEPS:,}"
            )
        return Run(self, planned, *self._pipeline(kernel))

    def each(self, planned: Launch) -> int:
        """Return how many independent items a work-item takes: several short ones, of many."""
        enough = planned.items // (dialect.ALONE * self._busy)
        return max(1, min(enough, _EACH, _SHORT // max(1, planned.cost, planned.steps)))

    def _pipeline(self, kernel: Kernel) -> tuple[Any, Any]:
        with self.lock:
            known = self._texts.get(id(kernel)) or (
                kernel,
                dialect.write(kernel, self._numbers.space),
            )
            _keep(self._texts, id(kernel), known)
            text = known[1]
            _NOTICE.using(text)  # explain shows it
            made = self._pipelines.get(text)
            if made is None:
                with _NOTICE.building(kept=False):
                    made = self._build(kernel, text)
            _keep(self._pipelines, text, made)
            return made

    def _build(self, kernel: Kernel, text: str) -> tuple[Any, Any]:
        device = self._device
        kinds = ["storage" if each.written else "read-only-storage" for each in kernel.arrays]
        entries = [
            {"binding": at, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kind}}
            for at, kind in enumerate([*kinds, self._numbers.binding])
        ]

        def make() -> tuple[Any, Any]:
            module = device.create_shader_module(code=text)
            bindings = device.create_bind_group_layout(entries=entries)
            layout = device.create_pipeline_layout(bind_group_layouts=[bindings])
            compute = {"module": module, "entry_point": "run"}
            return device.create_compute_pipeline(layout=layout, compute=compute), bindings

        return self.guard.compile(kernel.name, make)

    def bind(self, bindings: Any, buffers: Sequence[Any]) -> Any:
        """Return buffers as the arguments of a launch."""
        entries = [
            {"binding": at, "resource": {"buffer": buffer, "offset": 0, "size": buffer.size}}
            for at, buffer in enumerate(buffers)
        ]
        with self.guard.using("a launch"):
            return self._device.create_bind_group(layout=bindings, entries=entries)

    def numbers(self, numbers: Array) -> Any:
        """Return a small buffer of a launch's numbers."""
        with self.guard.using("a launch"):
            return self._device.create_buffer_with_data(data=numbers, usage=self._numbers.usage)

    def record(self, pipeline: Any, arguments: Any, groups: tuple[int, int]) -> None:
        """Record a launch."""
        with self.lock:
            if self._encoder is None:
                with self.guard.using("a launch"):
                    self._encoder = self._device.create_command_encoder()
                    self._pass = self._encoder.begin_compute_pass()
            self._pass.set_pipeline(pipeline)
            self._pass.set_bind_group(0, arguments)
            self._pass.dispatch_workgroups(*groups)
            self._recorded += 1
            self._unfinished += 1
            if self._recorded >= _MOST:
                self.submit()

    def keep_in_children(self, run: Run) -> None:
        """Let a forked child keep a launch: freeing it there might wait for threads it lacks."""
        self._runs.add(run)

    def close(self) -> None:
        """Wait, and give the memory back."""
        if not self.guard.lost:
            self.synchronize()
        self.pool.close()


def _keep(recent: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    recent[key] = value
    recent.move_to_end(key)
    if len(recent) > MOST_KEPT:
        recent.popitem(last=False)


class Run:
    """A kernel with its numbers: call it with boxes."""

    def __init__(self, runtime: Runtime, planned: Launch, pipeline: Any, bindings: Any) -> None:
        self._runtime, self._pipeline, self._bindings = runtime, pipeline, bindings
        kernel, items = planned.kernel, planned.items
        values = [*planned.numbers, items, 0]
        numbers = np.zeros(-(-len(values) // 4) * 4, np.int64)
        numbers[: len(values)] = values
        self._numbers = runtime.numbers(numbers.astype(np.int32))
        groups = items
        if kernel.group_size == 1:
            several = 1 if dialect.has_strips(kernel) else runtime.each(planned)
            groups = -(-items // (dialect.ALONE * several))
        rows = max(1, -(-groups // _GROUPS))
        self._groups = -(-groups // rows), rows
        self._bound: dict[tuple[int, ...], tuple[Any, Any]] = {}
        runtime.keep_in_children(self)

    def __call__(self, *boxes: Box) -> None:
        """Record the launch."""
        if not self._groups[0]:
            return
        nothing = self._runtime.nothing
        buffers = [box.memory.buffer if box.memory else nothing for box in boxes]
        key = tuple(map(id, buffers))
        with self._runtime.lock:
            bound = self._bound.get(key)
            if bound is None:
                if len(self._bound) >= _BOUND:
                    del self._bound[next(iter(self._bound))]
                made = self._runtime.bind(self._bindings, [*buffers, self._numbers])
                bound = self._bound[key] = buffers, made
            self._runtime.record(self._pipeline, bound[1], self._groups)


_living: Final[WeakSet[Runtime]] = WeakSet()
_inherited: Final[list[Any]] = []


def _before_fork() -> None:
    for runtime in _living:
        _inherited.extend([runtime, *runtime._runs])


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(before=_before_fork, after_in_parent=_inherited.clear)
