"""Copies of images between layouts: CPUs read neighbouring channels as vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import TensorType
from tensorplug_opencl.codegen import layouts
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


def launch_turn(runtime: Runtime, dtype: DType, shape: Shape, *, back: bool = False) -> Write:
    """Return the copy of images of ``shape``, channels first, to images with channels last.

    ``back``: the copy of those to images of ``shape``.
    """
    last = turn(shape)
    first_by = layouts.permuted_strides(shape, (0, *range(2, len(shape)), 1))
    steps = [first_by, layouts.row_major(last)]
    source, target = reversed(steps) if back else steps
    return moving.make_mover(runtime, dtype, last, source, target, TensorType(dtype, shape).size)


def turn_images(
    runtime: Runtime,
    dtype: DType,
    run: Callable[..., Any],
    images: Sequence[Shape],
    result: Shape | None = None,
) -> Callable[..., Any]:
    """Return ``run``, a function of images and others, for images with channels first.

    ``run`` takes channels last. ``images`` are the shapes of its first arguments, channels first;
    ``result`` is that of the last one, if this is images to be written.
    """

    def prepare_empty(shape: Shape) -> Callable[[], DeviceBuffer]:
        return runtime.prepare_empty(TensorType(dtype, turn(shape)))

    turns = [(prepare_empty(shape), launch_turn(runtime, dtype, shape)) for shape in images]
    back = None
    if result is not None:
        back = prepare_empty(result), launch_turn(runtime, dtype, result, back=True)

    def call(*buffers: DeviceBuffer) -> Any:
        turned = []
        for (make, turn_one), buffer in zip(turns, buffers, strict=False):
            turned.append(make())
            turn_one(buffer, turned[-1])
        rest = buffers[len(turns) :]
        if back is None:
            return run(*turned, *rest)
        make, turn_back = back
        made = make()
        run(*turned, *rest[:-1], made)
        turn_back(made, rest[-1])
        return None

    return call
