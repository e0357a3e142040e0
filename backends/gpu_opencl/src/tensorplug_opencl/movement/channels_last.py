"""Copies of images between layouts: CPUs read neighbouring channels as vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import TensorType
from tensorplug_opencl.codegen import calls, layouts
from tensorplug_opencl.movement import moving

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import DType, Shape
    from tensorplug_opencl.codegen.calls import Write
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Runtime


def turn(shape: Shape) -> Shape:
    """Return the shape of images with channels last, from that with channels first."""
    return (shape[0], *shape[2:], shape[1])


def launch_turn(runtime: Runtime, dtype: DType, shape: Shape) -> Write:
    """Return the copy of images of ``shape``, channels first, to images with channels last."""
    last = turn(shape)
    source = layouts.permuted_strides(shape, (0, *range(2, len(shape)), 1))
    size = TensorType(dtype, shape).size
    return moving.make_mover(runtime, dtype, last, source, layouts.row_major(last), size)


def turn_images(
    runtime: Runtime, dtype: DType, run: Callable[..., DeviceBuffer], images: Sequence[Shape]
) -> Callable[..., DeviceBuffer]:
    """Return ``run``, a function of images with channels last, for images with channels first."""
    types = [TensorType(dtype, turn(shape)) for shape in images]
    copies = [
        calls.make_producer(runtime, type_, launch_turn(runtime, dtype, shape))
        for type_, shape in zip(types, images, strict=True)
    ]

    def call(*buffers: DeviceBuffer) -> DeviceBuffer:
        return run(*[copy(buffer) for copy, buffer in zip(copies, buffers, strict=True)])

    return call
