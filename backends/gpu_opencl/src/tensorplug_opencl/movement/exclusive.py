"""Memory that one tensor owns, so that an assignment may write into it in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug_opencl.codegen.layouts import broadcast_strides, row_major
from tensorplug_opencl.memory.buffers import OF_BUFFER, references
from tensorplug_opencl.movement import moving

if TYPE_CHECKING:
    from tensorplug.plugin import Shape
    from tensorplug_opencl.codegen.layouts import Strides
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Runtime

    Key = tuple[int | slice | None, ...]


class ExclusiveBuffer:
    """See ``tensorplug.plugin.ExclusiveBuffer``. What shares a loan refers to the memory."""

    __slots__ = ("_buffer", "_runtime")

    def __init__(self, runtime: Runtime, buffer: DeviceBuffer) -> None:
        size = buffer.type.size
        self._runtime = runtime
        self._buffer = runtime.prepare_empty(buffer.type)()
        moving.make_mover(runtime, buffer.dtype, (size,), (1,), (1,), size)(buffer, self._buffer)

    def lend(self) -> DeviceBuffer:
        """Return a new buffer over the memory."""
        return self._buffer.view(self._buffer.shape)

    def overwrite(self, key: Key, value: DeviceBuffer) -> bool:
        """Write ``value`` at ``key`` unless an older loan than the newest one lives."""
        own = self._buffer
        if references(own.memory) != OF_BUFFER + 1:
            return False
        start, shape, steps = _locate(own.shape, key)
        if 0 not in shape:
            source = broadcast_strides(value.shape, shape)
            size = max(own.type.size, value.type.size)
            starts = (0, start)
            write = moving.make_mover(
                self._runtime, own.dtype, shape, source, steps, size, starts=starts
            )
            write(value, own)
        return True


def _locate(shape: Shape, key: Key) -> tuple[int, Shape, Strides]:
    """Return where the elements at a key begin, their shape, and the strides along its axes."""
    axes = iter(zip(shape, row_major(shape), strict=True))
    start = 0
    lengths, steps = [], []
    for entry in key:
        if entry is None:
            lengths.append(1)
            steps.append(0)
            continue
        length, step = next(axes)
        if isinstance(entry, slice):
            places = range(*entry.indices(length))
            start += places.start * step if places else 0
            lengths.append(len(places))
            steps.append(places.step * step)
        else:
            start += entry * step
    for length, step in axes:
        lengths.append(length)
        steps.append(step)
    return start, tuple(lengths), tuple(steps)
