"""Gradients of convolutions' filters, in two and three dimensions.

CPUs read images in place where output channels fill vectors (``direct_filters``). All else is a
matrix product that reads patches in the images themselves (``implicit``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.algorithms import CONVOLUTION_2D, CONVOLUTION_3D
from tensorplug.plugin import KernelTable, Shape, TensorType
from tensorplug_opencl.codegen import calls, layouts
from tensorplug_opencl.movement import channels_last
from tensorplug_opencl.windows import direct_filters, implicit
from tensorplug_opencl.windows.sliding import Convolution

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.codegen.layouts import Strides
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice

    Copy = Callable[[DeviceBuffer], DeviceBuffer]

kernels = KernelTable()


@kernels.prepare(CONVOLUTION_2D.backprop_filter)
@kernels.prepare(CONVOLUTION_3D.backprop_filter)
def backprop_filter(
    x: TensorType,
    dy: TensorType,
    *,
    attributes: dict[str, Any],
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Add up the products of x and dy over all positions."""
    convolution = Convolution.of(backend, x.dtype, (x.shape, out.shape, dy.shape), attributes)
    if convolution.empty:
        return calls.make_constant(backend.runtime, out)
    tile = direct_filters.choose_tile(convolution)
    if tile is not None and _is_readable(convolution):
        run = direct_filters.prepare(convolution, tile)
        if convolution.x_by[-1] == 1:
            return run
        images = convolution.x, convolution.y
        return channels_last.turn_images(convolution.runtime, convolution.dtype, run, images)
    (x_by, copied_x), (y_by, copied_dy) = (
        _make_readable(convolution, convolution.x, convolution.x_by),
        _make_readable(convolution, convolution.y, convolution.y_by),
    )
    write = implicit.prepare_filter_gradient(convolution._replace(x_by=x_by, y_by=y_by))
    add = calls.make_producer(convolution.runtime, out, write)
    return lambda x, dy: add(copied_x(x), copied_dy(dy))


def _is_readable(convolution: Convolution) -> bool:
    """Return whether a CPU reads channels last, after a copy that is worth it."""
    return convolution.x_by[-1] == 1 or convolution.spatial_taps > 1


def _make_readable(convolution: Convolution, shape: Shape, by: Strides) -> tuple[Strides, Copy]:
    """Return the best strides to read an array of ``shape`` by, and the copy that they need.

    CPUs find a pixel once for a run of channels, so a copy with channels last is worth it unless
    there is only one tap.
    """
    if not convolution.runtime.is_cpu or by[-1] == 1 or convolution.spatial_taps == 1:
        return by, lambda buffer: buffer
    last = channels_last.turn(shape)
    out = TensorType(convolution.dtype, last)
    copy = channels_last.launch_turn(convolution.runtime, convolution.dtype, shape)
    return layouts.row_major(last), calls.make_producer(convolution.runtime, out, copy)
