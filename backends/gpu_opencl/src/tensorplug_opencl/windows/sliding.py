"""A convolution as data: its types, its windows, and its arrays' layouts."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.algorithms import channel_axis, convolution_windows, spatial_axes
from tensorplug_opencl.codegen import layouts
from tensorplug_opencl.products.gathers import Digit, gather

if TYPE_CHECKING:
    from tensorplug.plugin import DType, Shape, Windows
    from tensorplug_opencl.codegen.layouts import Strides
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.products.gathers import Operand
    from tensorplug_opencl.runtime import Runtime


class Convolution(NamedTuple):
    """The shapes and layouts of a convolution.

    ``x``, ``filter`` and ``y`` are the shapes of input, filter and output, as received. ``x_by``
    and ``y_by`` are the distances of their (image, spatial axes, channel). Filters are [taps along
    each axis, in, out], which is the matrix [taps, out] unchanged.
    """

    runtime: Runtime
    dtype: DType
    x: Shape
    filter: Shape
    y: Shape
    windows: Windows
    x_by: Strides
    y_by: Strides

    @classmethod
    def of(
        cls,
        backend: OpenedDevice,
        dtype: DType,
        shapes: tuple[Shape, Shape, Shape],
        attributes: dict[str, Any],
    ) -> Convolution:
        """Return the convolution of x and filter to y, with these ``shapes``."""
        x, filter, y = shapes
        data_format = attributes["data_format"]
        order = (0, *spatial_axes(data_format), channel_axis(data_format))
        x_by, y_by = (layouts.permuted_strides(shape, order) for shape in (x, y))
        windows = convolution_windows(x, filter, attributes)
        return cls(backend.runtime, dtype, x, filter, y, windows, x_by, y_by)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to multiply."""
        return 0 in (*self.x, *self.filter, *self.y)

    @property
    def channels(self) -> int:
        """Number of input channels."""
        return self.filter[-2]

    @property
    def outputs(self) -> int:
        """Number of output channels."""
        return self.filter[-1]

    @property
    def spatial_taps(self) -> int:
        """Taps of a filter along all axes, for one pair of channels."""
        return prod(self.filter[:-2])

    @property
    def taps(self) -> int:
        """Elements of a filter for one output channel."""
        return prod(self.filter[:-1])

    @property
    def positions(self) -> int:
        """Output positions in one image."""
        return prod(window.out for window in self.windows)

    @property
    def reach(self) -> int:
        """The number of elements in the largest of x, filter and y."""
        return max(map(prod, (self.x, self.filter, self.y)))

    def results(self, images: int) -> Operand:
        """Return the outputs of that many images as a matrix [positions, channels]."""
        image_by, *axes_by, channel_by = self.y_by
        rows = [Digit(window.out, by) for window, by in zip(self.windows, axes_by, strict=True)]
        return gather([Digit(images, image_by), *rows], [Digit(self.outputs, channel_by)])
