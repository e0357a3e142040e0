"""Views, and inputs side by side: each is copied to its place.

The form of joining reads any number of inputs in one kernel, whose arguments end at some fifty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import KernelTable, Shape, TensorType, specs
from tensorplug_opencl.codegen.layouts import row_major
from tensorplug_opencl.movement import moving

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.codegen.layouts import Strides
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice

kernels = KernelTable()


@kernels.register(specs.IDENTITY)
def identity(x: DeviceBuffer) -> DeviceBuffer:
    """Share the memory."""
    return x


@kernels.register(specs.RESHAPE)
def reshape(x: DeviceBuffer, *, shape: Shape) -> DeviceBuffer:
    """Share the memory: buffers are always in row-major order."""
    return x.view(shape)


@kernels.prepare(specs.EXPAND_DIMS)
def expand_dims(input: TensorType, *, out: TensorType) -> Call:
    """Share the memory."""
    shape = out.shape
    return lambda x: x.view(shape)


@kernels.prepare(specs.CONCAT)
def concat(xs: list[TensorType], *, axis: int, backend: OpenedDevice, out: TensorType) -> Call:
    """Copy each input to its offset."""
    if len(xs) == 1:
        return lambda xs: xs[0]
    strides = row_major(out.shape)
    starts = [0]
    for x in xs:
        starts.append(starts[-1] + x.shape[axis] * strides[axis])
    return _join(backend, xs, [x.shape for x in xs], strides, starts, out)


@kernels.prepare(specs.PACK)
def pack(xs: list[TensorType], *, axis: int, backend: OpenedDevice, out: TensorType) -> Call:
    """Copy each input to its index on the new axis."""
    strides, shape = row_major(out.shape), out.shape
    if len(xs) == 1:
        return lambda xs: xs[0].view(shape)
    starts = [number * strides[axis] for number in range(len(xs))]
    return _join(
        backend, xs, [x.shape for x in xs], strides[:axis] + strides[axis + 1 :], starts, out
    )


def _join(
    backend: OpenedDevice,
    xs: list[TensorType],
    shapes: list[Shape],
    strides: Strides,
    starts: list[int],
    out: TensorType,
) -> Call:
    """Return a callable that writes each input with ``strides``, from its start on.

    Inputs of one shape share a launch, which takes their start as the output's offset.
    """
    runtime = backend.runtime
    make = runtime.prepare_empty(out)
    made: dict[Shape, Any] = {}
    copies: list[tuple[int, int, Any]] = []
    for number, (x, shape, start) in enumerate(zip(xs, shapes, starts, strict=False)):
        if not x.size:
            continue
        copy = made.get(shape)
        if copy is None:
            copy = moving.make_mover(runtime, x.dtype, shape, row_major(shape), strides, out.size)
            made[shape] = copy
        copies.append((number, start, copy))

    def run(xs: list[DeviceBuffer]) -> DeviceBuffer:
        result = make()
        for number, start, copy in copies:
            copy(xs[number], result.view(result.shape, start))
        return result

    return run
