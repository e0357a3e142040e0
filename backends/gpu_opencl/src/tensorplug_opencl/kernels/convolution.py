"""Convolution in two and three dimensions, and its gradients.

CPUs read images and filters in place where output channels fill vectors (``direct``, and
``direct_filters`` for the filter's gradient). All else is matrix products that read patches in the
images themselves (``implicit``). One gradient on CPUs is faster with patches in memory
(``patched``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.algorithms import CONVOLUTION_2D, CONVOLUTION_3D, ConvolutionFamily, channel_axis
from tensorplug.plugin import KernelRefusedError, Shape, TensorType, specs
from tensorplug_opencl.codegen import calls, layouts
from tensorplug_opencl.movement import channels_last
from tensorplug_opencl.products.epilogues import choose_epilogue
from tensorplug_opencl.products.matrices import Matrix
from tensorplug_opencl.products.product_texts import NO_EPILOGUE
from tensorplug_opencl.windows import direct, direct_filters, implicit, patched
from tensorplug_opencl.windows.sliding import Convolution

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_opencl.codegen.calls import Call, Write
    from tensorplug_opencl.codegen.layouts import Strides
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.products.product_texts import Epilogue

    Copy = Callable[[DeviceBuffer], DeviceBuffer]

kernels = calls.Kernels()

Attributes = dict[str, Any]


# Patches are faster for the input's gradient on CPUs if the input has fewer channels than FEW, and
# if there are at least WIDER output channels for each of them.
FEW: Final = 16
WIDER: Final = 2
MANY: Final = 256  # positions, fewer of which are not worth a turned copy of the filter


def _prepare_forward(convolution: Convolution, epilogue: Epilogue = NO_EPILOGUE) -> Write:
    """Return a function (x, filter, the epilogue's inputs, result)."""
    tile = direct.choose_tile(convolution)
    if tile is not None and _is_readable(convolution):
        launch = direct.launch_forward(convolution, tile, epilogue)
        return _turn_images(convolution, launch, (convolution.x,), convolution.y)
    x_by, copied = _make_readable(convolution, convolution.x, convolution.x_by)
    write = implicit.prepare_forward(convolution._replace(x_by=x_by), epilogue)
    return lambda x, *rest: write(copied(x), *rest)


def _is_readable(convolution: Convolution) -> bool:
    """Return whether a CPU reads channels last, after a copy that is worth it."""
    return convolution.x_by[-1] == 1 or convolution.spatial_taps > 1


def _turn_images(
    convolution: Convolution,
    run: Callable[..., Any],
    images: Sequence[Shape],
    result: Shape | None = None,
) -> Callable[..., Any]:
    """Return ``run``, a function of ``images`` and others, for images in the given layout."""
    if convolution.x_by[-1] == 1:
        return run
    runtime, dtype = convolution.runtime, convolution.dtype
    return channels_last.turn_images(runtime, dtype, run, images, result)


def _prepare_filter_gradient(convolution: Convolution, out: TensorType) -> Call:
    """Return a function of x and dy that returns the gradient."""
    tile = direct_filters.choose_tile(convolution)
    if tile is not None and _is_readable(convolution):
        run = direct_filters.prepare(convolution, tile)
        return _turn_images(convolution, run, (convolution.x, convolution.y))
    (x_by, copied_x), (y_by, copied_dy) = (
        _make_readable(convolution, convolution.x, convolution.x_by),
        _make_readable(convolution, convolution.y, convolution.y_by),
    )
    write = implicit.prepare_filter_gradient(convolution._replace(x_by=x_by, y_by=y_by))
    add = calls.make_producer(convolution.runtime, out, write)
    return lambda x, dy: add(copied_x(x), copied_dy(dy))


def _prepare_input_gradient(convolution: Convolution) -> Write:
    """Return a function (dy, filter, result), the fastest of three.

    With strides of 1 the gradient is itself a convolution. On CPUs the implicit product packs what
    it reads for each tap, for as few columns as there are channels. Patches are packed once, but
    written and read for each channel; those of a narrow float would be rounded before they are
    added up.
    """
    enough = convolution.x[0] * convolution.positions >= MANY
    tile = direct.choose_tile(convolution.turned) if convolution.turnable and enough else None
    if tile is not None and _is_readable(convolution):
        run = direct.prepare_input_gradient(convolution, tile)
        return _turn_images(convolution, run, (convolution.y,), convolution.x)
    few = convolution.channels < FEW and WIDER * convolution.channels <= convolution.outputs
    exact = convolution.dtype.compute is convolution.dtype
    if convolution.runtime.is_cpu and few and exact and convolution.spatial_taps > 1:
        run = patched.prepare_input_gradient(convolution.last)
        return _turn_images(convolution, run, (convolution.y,), convolution.x)
    y_by, copied = _make_readable(convolution, convolution.y, convolution.y_by)
    write = implicit.prepare_input_gradient(convolution._replace(y_by=y_by))
    return lambda dy, *rest: write(copied(dy), *rest)


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


def enter(
    kernels: calls.Kernels,
    family: ConvolutionFamily,
    plan: Callable[..., Any],
    forward: Callable[[Any], Write],
    input_gradient: Callable[[Any], Write],
    filter_gradient: Callable[[Any, TensorType], Call],
) -> None:
    """Register the kernels of ``family``; ``plan`` is ``Convolution.of`` or another like it."""

    @kernels.write(family.forward)
    def convolve(
        x: TensorType,
        filter: TensorType,
        *,
        attributes: Attributes,
        backend: OpenedDevice,
        out: TensorType,
    ) -> Write:
        of = plan(backend, x.dtype, (x.shape, filter.shape, out.shape), attributes)
        return calls.fill_with(backend.runtime, out.dtype) if of.empty else forward(of)

    @kernels.write(family.backprop_input)
    def backprop_input(
        dy: TensorType,
        filter: TensorType,
        *,
        attributes: Attributes,
        backend: OpenedDevice,
        out: TensorType,
    ) -> Write:
        of = plan(backend, dy.dtype, (out.shape, filter.shape, dy.shape), attributes)
        return calls.fill_with(backend.runtime, out.dtype) if of.empty else input_gradient(of)

    @kernels.prepare(family.backprop_filter)
    def backprop_filter(
        x: TensorType,
        dy: TensorType,
        *,
        attributes: Attributes,
        backend: OpenedDevice,
        out: TensorType,
    ) -> Call:
        of = plan(backend, x.dtype, (x.shape, out.shape, dy.shape), attributes)
        return calls.make_constant(backend.runtime, out) if of.empty else filter_gradient(of, out)


for _family in (CONVOLUTION_2D, CONVOLUTION_3D):
    enter(
        kernels,
        _family,
        Convolution.of,
        _prepare_forward,
        _prepare_input_gradient,
        _prepare_filter_gradient,
    )


@kernels.prepare(specs.FUSED_CONV2D)
def fused_conv2d(
    x: TensorType,
    filter: TensorType,
    bias: TensorType | None,
    prelu_activation_weights: TensorType | None,
    *,
    attributes: Attributes,
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Convolve, and apply the epilogue to each element before it is stored."""
    convolution = Convolution.of(backend, x.dtype, (x.shape, filter.shape, out.shape), attributes)
    if convolution.empty:
        raise KernelRefusedError("there is nothing to convolve")
    fused = choose_epilogue(out.dtype, out.rank, bias, prelu_activation_weights, attributes)
    channel = channel_axis(attributes["data_format"])

    def view(steps: layouts.Strides) -> Matrix:
        if any(step for axis, step in enumerate(steps) if axis != channel):
            raise KernelRefusedError("the bias or the slopes differ between positions")
        return Matrix(0, steps[channel], ())

    write = _prepare_forward(convolution, fused.bind(out.shape, view))
    return calls.make_producer(backend.runtime, out, fused.reorder(write))
