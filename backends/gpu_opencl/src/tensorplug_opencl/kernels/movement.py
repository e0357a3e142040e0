"""Moving elements: views where they stay contiguous, strided copies where they do not.

Forms are as fast (0.6 to 1.02 of the time, on 2^20 elements), but to plan them for sizes that are
new takes 5 to 15 times as long: a transposition 0.56 ms instead of 0.1, joining of two 1.4 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import KernelTable, Shape, TensorType, specs
from tensorplug_opencl.codegen.layouts import broadcast_strides, permuted_strides, row_major
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


@kernels.prepare(specs.TRANSPOSE)
def transpose(
    x: TensorType, *, perm: tuple[int, ...], backend: OpenedDevice, out: TensorType
) -> Call:
    """Share the memory if only axes of length 1 change places."""
    strides = permuted_strides(x.shape, perm)
    return moving.make_reader(backend.runtime, x, out.shape, strides, out)


@kernels.prepare(specs.BROADCAST_TO)
def broadcast_to(x: TensorType, *, backend: OpenedDevice, out: TensorType) -> Call:
    """Repeat elements along the axes that are stretched."""
    strides = broadcast_strides(x.shape, out.shape)
    return moving.make_reader(backend.runtime, x, out.shape, strides, out)


@kernels.prepare(specs.SLICE)
def slice_(
    x: TensorType, *, begin: tuple[int, ...], backend: OpenedDevice, out: TensorType
) -> Call:
    """Share the memory if the block is contiguous."""
    own = row_major(x.shape)
    start = sum(first * stride for first, stride in zip(begin, own, strict=True))
    return moving.make_reader(backend.runtime, x, out.shape, own, out, start)


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
