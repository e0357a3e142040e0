"""Copies of images between layouts: CPUs read neighbouring channels as vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import TensorType
from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import moving

if TYPE_CHECKING:
    from tensorplug.plugin import DType, Shape
    from tensorplug_opencl.runtime import Launch, Runtime

__all__ = ["launch_turn", "launch_turn_back", "turn"]


def turn(shape: Shape) -> Shape:
    """Return the shape of images with channels last, from that with channels first."""
    return (shape[0], *shape[2:], shape[1])


def launch_turn(runtime: Runtime, dtype: DType, shape: Shape) -> Launch:
    """Return the copy of images of ``shape``, channels first, to images with channels last."""
    return _launch(runtime, dtype, shape, back=False)


def launch_turn_back(runtime: Runtime, dtype: DType, shape: Shape) -> Launch:
    """Return the copy of images with channels last to images of ``shape``, channels first."""
    return _launch(runtime, dtype, shape, back=True)


def _launch(runtime: Runtime, dtype: DType, shape: Shape, *, back: bool) -> Launch:
    last = turn(shape)
    first_by = layouts.permuted_strides(shape, (0, *range(2, len(shape)), 1))
    steps = [first_by, layouts.row_major(last)]
    source, target = reversed(steps) if back else steps
    return moving.make_mover(runtime, dtype, last, source, target, TensorType(dtype, shape).size)
