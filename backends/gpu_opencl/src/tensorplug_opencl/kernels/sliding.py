"""A convolution as data: types, windows, and how its arrays are laid out."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.ops.correlation import windows_of
from tensorplug.windows import channel_axis, spatial_axes
from tensorplug_opencl import layouts

if TYPE_CHECKING:
    from tensorplug.dtypes import DType
    from tensorplug.shapes import Shape
    from tensorplug.windows import Windows
    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.runtime import Runtime

__all__ = ["Convolution"]


class Convolution(NamedTuple):
    """Everything that the forward kernel and those of its two gradients share.

    ``x``, ``filter`` and ``y`` are the shapes of input, filter and output, all as given.
    Filters are [taps along each axis, in, out], which is the matrix [taps, out] as it stands.
    """

    runtime: Runtime
    dtype: DType
    x: Shape
    filter: Shape
    y: Shape
    windows: Windows
    data_format: str

    @classmethod
    def of(
        cls,
        backend: OpenCLBackend,
        dtype: DType,
        shapes: tuple[Shape, Shape, Shape],
        attributes: dict[str, Any],
    ) -> Convolution:
        """Return the convolution of x and filter to y, whose ``shapes`` are given."""
        windows = windows_of(shapes[0], shapes[1], attributes)
        return cls(backend.runtime, dtype, *shapes, windows, attributes["data_format"])

    @property
    def empty(self) -> bool:
        """Whether nothing is multiplied with anything."""
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
    def taps(self) -> int:
        """Elements of a filter for one output channel."""
        return prod(self.filter[:-1])

    @property
    def positions(self) -> int:
        """Output positions in one image."""
        return prod(each.out for each in self.windows)

    @property
    def reach(self) -> int:
        """The number of elements in the largest of x, filter and y."""
        return max(map(prod, (self.x, self.filter, self.y)))

    def strides(self, shape: Shape) -> tuple[int, ...]:
        """Return distances of (image, spatial axes, channel) in a dense array of ``shape``."""
        own = layouts.row_major(shape)
        order = (0, *spatial_axes(self.data_format), channel_axis(self.data_format))
        return tuple(own[axis] for axis in order)
