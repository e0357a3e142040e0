"""Moving elements: views where they stay contiguous, strided copies where they do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.ops.movement import (
    BROADCAST_TO,
    CONCAT,
    IDENTITY,
    PAD_V2,
    RESHAPE,
    SLICE,
    TRANSPOSE,
)
from tensorplug.tables import KernelTable
from tensorplug_opencl.kernels import calls, moving
from tensorplug_opencl.layouts import broadcast_strides, row_major

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.shapes import Shape
    from tensorplug.spec import TensorType
    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.buffers import DeviceBuffer

kernels = KernelTable()


@kernels.register(IDENTITY)
def identity(x: DeviceBuffer) -> DeviceBuffer:
    """Share the memory."""
    return x


@kernels.register(RESHAPE)
def reshape(x: DeviceBuffer, *, shape: Shape) -> DeviceBuffer:
    """Share the memory: buffers are always in row-major order."""
    return x.view(shape)


@kernels.prepare(TRANSPOSE)
def transpose(
    x: TensorType, *, perm: tuple[int, ...], backend: OpenCLBackend, out: TensorType
) -> Callable[..., DeviceBuffer]:
    """Share the memory if only axes of length 1 change places."""
    own = row_major(x.shape)
    return _gathered(x, tuple(own[axis] for axis in perm), 0, backend, out)


@kernels.prepare(BROADCAST_TO)
def broadcast_to(
    x: TensorType, *, backend: OpenCLBackend, out: TensorType
) -> Callable[..., DeviceBuffer]:
    """Repeat elements along the axes that are stretched."""
    return _gathered(x, broadcast_strides(x.shape, out.shape), 0, backend, out)


@kernels.prepare(SLICE)
def slice_(
    x: TensorType, *, begin: tuple[int, ...], backend: OpenCLBackend, out: TensorType
) -> Callable[..., DeviceBuffer]:
    """Share the memory if the block is contiguous."""
    own = row_major(x.shape)
    start = sum(first * stride for first, stride in zip(begin, own, strict=True))
    return _gathered(x, own, start, backend, out)


def _gathered(
    x: TensorType, strides: tuple[int, ...], start: int, backend: OpenCLBackend, out: TensorType
) -> Callable[..., DeviceBuffer]:
    """Return what reads x from element ``start`` on with ``strides``, one per axis of out."""
    shape, runtime = out.shape, backend.runtime
    if not out.size:
        return calls.empty(runtime, out)
    if moving.is_dense(shape, strides):
        return lambda x: x.view(shape, start)
    copy = moving.mover(runtime, out.dtype, shape, strides, row_major(shape), x.size)
    if not start:
        return calls.producer(runtime, out, copy)
    return calls.producer(runtime, out, lambda x, result: copy(x.view(shape, start), result))


@kernels.prepare(PAD_V2)
def pad_v2(
    x: TensorType,
    *,
    paddings: tuple[tuple[int, int], ...],
    constant_value: Any,
    backend: OpenCLBackend,
    out: TensorType,
) -> Callable[..., DeviceBuffer]:
    """Fill, then copy x into its place."""
    runtime = backend.runtime
    if not any(map(any, paddings)):
        return lambda x: x
    if not x.size:
        return calls.constant(runtime, out, constant_value)
    value = calls.element(constant_value, out.dtype)
    strides = row_major(out.shape)
    start = sum(low * step for (low, _), step in zip(paddings, strides, strict=True))
    insert = moving.mover(runtime, x.dtype, x.shape, row_major(x.shape), strides, out.size)

    def write(x: DeviceBuffer, result: DeviceBuffer) -> None:
        runtime.fill(result, value)
        insert(x, result.view(x.shape, start))

    return calls.producer(runtime, out, write)


@kernels.prepare(CONCAT)
def concat(
    xs: list[TensorType], *, axis: int, backend: OpenCLBackend, out: TensorType
) -> Callable[..., DeviceBuffer]:
    """Copy each input into its place."""
    make, strides = backend.runtime.maker(out), row_major(out.shape)
    copies: list[tuple[int, int, Any]] = []
    at = 0
    for number, x in enumerate(xs):
        if x.size:
            own = row_major(x.shape)
            copy = moving.mover(backend.runtime, x.dtype, x.shape, own, strides, out.size)
            copies.append((number, at * strides[axis], copy))
        at += x.shape[axis]

    def run(xs: list[DeviceBuffer]) -> DeviceBuffer:
        if len(xs) == 1:
            return xs[0]
        result = make()
        for number, start, copy in copies:
            copy(xs[number], result.view(result.shape, start))
        return result

    return run
