"""A depthwise convolution: its shapes, and the walks over its elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.algorithms import channel_axis, convolution_windows, spatial_axes
from tensorplug.plugin import DType, Shape, TensorType, Windows
from tensorplug_opencl.codegen import ctypes, functions
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.products import product_texts
from tensorplug_opencl.products.product_texts import NO_EPILOGUE, Epilogue
from tensorplug_opencl.windows import strips
from tensorplug_opencl.windows.strips import Lanes, Visit, Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Launch, Runtime


Attributes = dict[str, Any]


class Depthwise(NamedTuple):
    """The shapes of x, filter and y, the windows, and the order of their axes in memory.

    The order is (image, rows, columns, channel).
    """

    runtime: Runtime
    dtype: DType
    x: Shape
    filter: Shape
    y: Shape
    windows: Windows
    order: tuple[int, ...]

    @classmethod
    def of(
        cls,
        backend: OpenedDevice,
        dtype: DType,
        shapes: tuple[Shape, Shape, Shape],
        attributes: Attributes,
    ) -> Depthwise:
        """Return the convolution of x and filter to y, of these ``shapes``."""
        data_format = attributes["data_format"]
        order = (0, *spatial_axes(data_format), channel_axis(data_format))
        windows = convolution_windows(shapes[0], shapes[1], attributes)
        return cls(backend.runtime, dtype, *shapes, windows, order)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to multiply."""
        return 0 in (*self.x, *self.filter, *self.y)

    @property
    def last(self) -> bool:
        """Whether channels come last."""
        return self.order[-1] == 3

    @property
    def multiplier(self) -> int:
        """Output channels of each input channel."""
        return self.filter[3]

    @property
    def outputs(self) -> int:
        """Number of output channels."""
        return self.filter[2] * self.filter[3]

    @property
    def reach(self) -> int:
        """The number of elements in the largest of x, filter and y."""
        return max(TensorType(self.dtype, shape).size for shape in (self.x, self.filter, self.y))

    def walk(self, *, back: bool) -> Walk:
        """Return the walk over the elements of y, or ``back``: of x."""
        images, channels = self.x[0], self.filter[2] if back else self.outputs
        if self.last:
            return Walk(self.runtime, self.windows, images, channels, back)
        return Walk(self.runtime, self.windows, images * channels, 1, back)

    def launch(
        self,
        title: str,
        walk: Walk,
        write: Callable[[Lanes, Visit], str],
        epilogue: Epilogue = NO_EPILOGUE,
        steps: Mapping[str, int] | None = None,
    ) -> Launch:
        """Return the launch on x (or dy), filter, the epilogue's inputs, and the result.

        ``steps`` are constants for the positions of these inputs.
        """
        stored, computed = ctypes.stored(self.dtype), ctypes.computed(self.dtype)
        kind = ctypes.host(computed).type
        library = functions.define(epilogue.expression, self.dtype)
        return strips.launch(
            walk,
            f"depthwise convolution {title} {self.dtype}",
            [
                *(Array(name, stored) for name in ("x", "w", *dict(epilogue.inputs))),
                Array("y", stored, written=True),
            ],
            write,
            computed,
            values={"outputs": self.outputs, "multiplier": self.multiplier, **(steps or {})},
            numbers=[(f"{name}_argument", kind(value)) for name, value in epilogue.numbers],
            reach=self.reach,
            declarations=f"{library}\n{product_texts.define_epilogue(epilogue, computed)}",
        )
