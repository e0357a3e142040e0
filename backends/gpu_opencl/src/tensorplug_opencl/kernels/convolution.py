"""Convolution in two and three dimensions, and its gradients: a matrix product by one of two ways.

``implicit`` reads the patches where they lie in the images, ``patched`` writes them to memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tensorplug.errors import KernelRefusedError
from tensorplug.ops import convolution as plane
from tensorplug.ops import volumes
from tensorplug.ops.fused import FUSED_CONV2D
from tensorplug.tables import KernelTable
from tensorplug.windows import channel_axis
from tensorplug_opencl.kernels import calls, implicit, patched
from tensorplug_opencl.kernels.endings import fused
from tensorplug_opencl.kernels.products import NOTHING, Ending, Matrix
from tensorplug_opencl.kernels.sliding import Convolution

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.ops.correlation import Family
    from tensorplug.shapes import Shape
    from tensorplug.spec import TensorType
    from tensorplug_opencl import layouts
    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.buffers import DeviceBuffer

    Call = Callable[..., DeviceBuffer]

kernels = KernelTable()

Attributes = dict[str, Any]


class Way(Protocol):
    """How the three products of a convolution are computed: functions that write the result."""

    def forward(self, of: Convolution, ending: Ending) -> Callable[..., None]:
        """Return a function (x, filter, the ending's inputs, result)."""
        ...

    def input_gradient(self, of: Convolution) -> Callable[..., None]:
        """Return a function (dy, filter, result)."""
        ...

    def filter_gradient(self, of: Convolution) -> Callable[..., None]:
        """Return a function (x, dy, result)."""
        ...


def _way(of: Convolution) -> Way:
    """Return the module by whose functions a convolution is computed."""
    return patched if of.runtime.is_cpu else implicit


def _enter(family: Family) -> None:
    @kernels.prepare(family.forward)
    def forward(
        x: TensorType,
        filter: TensorType,
        *,
        attributes: Attributes,
        backend: OpenCLBackend,
        out: TensorType,
    ) -> Call:
        of = Convolution.of(backend, x.dtype, (x.shape, filter.shape, out.shape), attributes)
        if of.empty:
            return calls.constant(backend.runtime, out)
        return calls.producer(backend.runtime, out, _way(of).forward(of, NOTHING))

    @kernels.prepare(family.backprop_input)
    def backprop_input(
        dy: TensorType,
        filter: TensorType,
        *,
        attributes: Attributes,
        input_shape: Shape,
        backend: OpenCLBackend,
        out: TensorType,
    ) -> Call:
        shapes = (input_shape, filter.shape, dy.shape)
        of = Convolution.of(backend, dy.dtype, shapes, attributes)
        if of.empty:
            return calls.constant(backend.runtime, out)
        return calls.producer(backend.runtime, out, _way(of).input_gradient(of))

    @kernels.prepare(family.backprop_filter)
    def backprop_filter(
        x: TensorType,
        dy: TensorType,
        *,
        attributes: Attributes,
        filter_shape: Shape,
        backend: OpenCLBackend,
        out: TensorType,
    ) -> Call:
        shapes = (x.shape, filter_shape, dy.shape)
        of = Convolution.of(backend, x.dtype, shapes, attributes)
        if of.empty:
            return calls.constant(backend.runtime, out)
        return calls.producer(backend.runtime, out, _way(of).filter_gradient(of))


for _each in (plane.FAMILY, volumes.FAMILY):
    _enter(_each)


@kernels.prepare(FUSED_CONV2D)
def fused_conv2d(
    x: TensorType,
    filter: TensorType,
    bias: TensorType | None,
    prelu_activation_weights: TensorType | None,
    *,
    attributes: Attributes,
    backend: OpenCLBackend,
    out: TensorType,
) -> Call:
    """Convolve, and end each element before it is stored."""
    of = Convolution.of(backend, x.dtype, (x.shape, filter.shape, out.shape), attributes)
    if of.empty:
        raise KernelRefusedError("there is nothing to convolve")
    how = fused(out.dtype, out.rank, bias, prelu_activation_weights, attributes)
    channel = channel_axis(of.data_format)

    def view(steps: layouts.Strides) -> Matrix:
        if any(step for axis, step in enumerate(steps) if axis != channel):
            raise KernelRefusedError("the bias or the slopes differ between positions")
        return Matrix(0, steps[channel], (0,))

    write = _way(of).forward(of, how.ending(out.shape, view))
    return calls.producer(backend.runtime, out, how.launched(write))
