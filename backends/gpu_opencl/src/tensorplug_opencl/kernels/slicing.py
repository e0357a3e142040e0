"""Parts of tensors: views where they are contiguous, strided copies where they are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.algorithms import Selection, selection
from tensorplug.plugin import KernelTable, Shape, TensorType, specs
from tensorplug_opencl.codegen import calls
from tensorplug_opencl.codegen.layouts import broadcast_strides, row_major
from tensorplug_opencl.movement import moving

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.codegen.layouts import Strides
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice

kernels = KernelTable()


@kernels.prepare(specs.UNPACK)
def unpack(
    value: TensorType, *, axis: int, backend: OpenedDevice, out: list[TensorType]
) -> Callable[..., Any]:
    """Read each place along the axis."""
    strides = row_major(value.shape)
    starts = [place * strides[axis] for place in range(value.shape[axis])]
    return _read_parts(backend, value, strides[:axis] + strides[axis + 1 :], starts, out)


@kernels.prepare(specs.SPLIT_V)
def split(
    x: TensorType,
    *,
    num_or_size_splits: tuple[int, ...],
    axis: int,
    backend: OpenedDevice,
    out: list[TensorType],
) -> Callable[..., Any]:
    """Read each part."""
    strides = row_major(x.shape)
    starts = [0]
    for size in num_or_size_splits:
        starts.append(starts[-1] + size * strides[axis])
    return _read_parts(backend, x, strides, starts, out)


def _read_parts(
    backend: OpenedDevice,
    x: TensorType,
    strides: Strides,
    starts: list[int],
    out: Sequence[TensorType],
) -> Callable[..., Any]:
    """Return a callable that reads a part with ``strides`` from each start on.

    Parts of one type share a launch, which takes their start as the offset of a view.
    """
    made: dict[TensorType, Call] = {}
    reads = []
    for start, type_ in zip(starts, out, strict=False):
        if type_ not in made:
            made[type_] = moving.make_reader(
                backend.runtime, x.dtype, type_.shape, strides, x.size, type_
            )
        reads.append((start, made[type_]))
    flat = (x.size,)
    return lambda x: [read(x.view(flat, start)) for start, read in reads]


def _find_walk(shape: Shape, taken: Selection) -> tuple[int, Strides]:
    """Return the start of a selection from ``shape``, and its strides."""
    own = row_major(shape)
    start = sum(first * step for first, step in zip(taken.starts, own, strict=True))
    return start, tuple(by * step for by, step in zip(taken.steps, own, strict=True))


@kernels.prepare(specs.STRIDED_SLICE)
def strided_slice(
    x: TensorType, *, attributes: dict[str, Any], backend: OpenedDevice, out: TensorType
) -> Call:
    """Share the memory if the selection is contiguous."""
    taken = selection(x.shape, attributes)
    start, strides = _find_walk(x.shape, taken)
    return moving.make_reader(backend.runtime, x.dtype, taken.counts, strides, x.size, out, start)


@kernels.prepare(specs.STRIDED_SLICE_GRAD)
def strided_slice_grad(
    dy: TensorType,
    *,
    shape: Shape,
    attributes: dict[str, Any],
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Write into zeros."""
    runtime = backend.runtime
    taken = selection(shape, attributes)
    if not dy.size:
        return calls.make_constant(runtime, out)
    start, strides = _find_walk(shape, taken)
    zero, own = calls.make_element(0, out.dtype), row_major(taken.counts)
    starts = (0, start)
    insert = moving.make_mover(
        runtime, dy.dtype, taken.counts, own, strides, out.size, starts=starts
    )

    def write(dy: DeviceBuffer, result: DeviceBuffer) -> None:
        runtime.fill(result, zero)
        insert(dy, result)

    return calls.make_producer(runtime, out, write)


@kernels.prepare(specs.STRIDED_SLICE_UPDATE)
def strided_slice_update(
    tensor: TensorType,
    value: TensorType,
    *,
    attributes: dict[str, Any],
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Copy, then write the value, repeated along the axes that are stretched, into the slice."""
    runtime = backend.runtime
    taken = selection(tensor.shape, attributes)
    if not tensor.size or not all(taken.counts):
        return lambda tensor, _value: tensor
    start, strides = _find_walk(tensor.shape, taken)
    places = iter(zip(strides, taken.counts, strict=True))
    # The axes of the slice: those of the tensor, apart from added or dropped axes of one element.
    steps = tuple(_take_next_step(places, size) for size in taken.shape)
    source = broadcast_strides(value.shape, taken.shape)
    flat = ((tensor.size,), (1,))
    copy = moving.make_mover(runtime, tensor.dtype, flat[0], flat[1], flat[1], tensor.size)
    insert = moving.make_mover(
        runtime, tensor.dtype, taken.shape, source, steps, tensor.size, starts=(0, start)
    )

    def write(tensor: DeviceBuffer, value: DeviceBuffer, result: DeviceBuffer) -> None:
        copy(tensor, result)
        insert(value, result)

    return calls.make_producer(runtime, out, write)


def _take_next_step(places: Any, size: int) -> int:
    """Return the stride of the next axis of ``size`` elements; 0 for an axis of one element."""
    if size == 1:
        return 0
    return int(next(step for step, count in places if count == size))
