"""Convolution in two and three dimensions: what ``correlation`` computes, in any data format."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from tensorplug.algorithms import (
    CONVOLUTION_2D,
    CONVOLUTION_3D,
    ConvolutionFamily,
    convolution_windows,
)
from tensorplug_cpu.arrays import working
from tensorplug_cpu.constants import Bindable
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.jit.families import convolution as native_convolution
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.windows import correlation
from tensorplug_cpu.windows.sliding import layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from tensorplug.plugin import Shape, TensorType, Windows
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()

Attributes = dict[str, Any]


class Products(Protocol):
    """The module that computes a family on arrays with channels last."""

    def correlate(self, x: Array, filter: Array, at: Windows) -> Array:
        """Return the convolution."""

    def spread(self, dy: Array, filter: Array, at: Windows) -> Array:
        """Return the gradient of x."""

    def correlate_filter(self, x: Array, dy: Array, at: Windows) -> Array:
        """Return the gradient of the filter."""


class Forward(Protocol):
    """A native convolution, or product of matrices."""

    def __call__(self, x: Array, filter: Array, /, *epilogue: Any) -> Array:
        """Return the convolution."""

    def bind(self, filter: Array, /, *epilogue: Any) -> Call:
        """Return it as a function of x alone, for which the filter is prepared once."""


class Native(Protocol):
    """The module that computes it by native loops, prepared for windows, batch, filter, dtype.

    A function is None where the loops are missing, or are not worthwhile.
    """

    def forward(
        self, at: Windows, batch: int, filter: Shape, dtype: np.dtype[Any]
    ) -> Forward | None:
        """Return ``correlate``, which may be given bias, slope and the name of an epilogue."""

    def gradient_of_image(
        self, at: Windows, batch: int, filter: Shape, dtype: np.dtype[Any]
    ) -> Call | None:
        """Return ``spread``."""

    def gradient_of_filter(
        self, at: Windows, batch: int, filter: Shape, dtype: np.dtype[Any]
    ) -> Call | None:
        """Return ``correlate_filter``."""


def enter(kernels: Kernels, family: ConvolutionFamily, products: Products, native: Native) -> None:
    """Register the three kernels of ``family``; float16 works in float32 and is rounded once."""

    @kernels.prepare(family.forward, because="faster")
    def forward(
        x: TensorType,
        filter: TensorType,
        *,
        attributes: Attributes,
        data_format: str,
        out: TensorType,
    ) -> Call:
        at = convolution_windows(x.shape, filter.shape, attributes)
        work, narrow = working(out.dtype), out.dtype.numpy
        last, back = layout(data_format)
        loops = native.forward(at, x.shape[0], filter.shape, work)
        correlate = loops or partial(products.correlate, at=at)

        def run(x: Array, filter: Array) -> Array:
            images = x.transpose(last).astype(work, copy=False)
            wide = correlate(images, filter.astype(work, copy=False))
            return wide.transpose(back).astype(narrow, copy=False)

        def bound(constants: Sequence[Array | None]) -> Call | None:
            image, taps = constants
            if loops is None or taps is None or image is not None:
                return None
            convolve = loops.bind(taps.astype(work, copy=False))

            def run_bound(x: Array, _filter: Array) -> Array:
                wide: Array = convolve(x.transpose(last).astype(work, copy=False))
                return wide.transpose(back).astype(narrow, copy=False)

            return without_warnings(run_bound)

        return Bindable(without_warnings(run), bound)

    @kernels.prepare(family.backprop_input, because="faster")
    def backprop_input(
        dy: TensorType,
        filter: TensorType,
        *,
        attributes: Attributes,
        data_format: str,
        input_shape: Shape,
        out: TensorType,
    ) -> Call:
        at = convolution_windows(input_shape, filter.shape, attributes)
        work, narrow = working(out.dtype), out.dtype.numpy
        last, back = layout(data_format)
        spread = native.gradient_of_image(at, dy.shape[0], filter.shape, work)
        spread = spread or partial(products.spread, at=at)

        def run(dy: Array, filter: Array) -> Array:
            upstream = dy.transpose(last).astype(work, copy=False)
            wide = spread(upstream, filter.astype(work, copy=False))
            return wide.transpose(back).astype(narrow, copy=False)

        return without_warnings(run)

    @kernels.prepare(family.backprop_filter, because="faster")
    def backprop_filter(
        x: TensorType,
        dy: TensorType,
        *,
        attributes: Attributes,
        data_format: str,
        filter_shape: Shape,
        out: TensorType,
    ) -> Call:
        at = convolution_windows(x.shape, filter_shape, attributes)
        work, narrow = working(out.dtype), out.dtype.numpy
        last, _ = layout(data_format)
        correlate = native.gradient_of_filter(at, x.shape[0], filter_shape, work)
        correlate = correlate or partial(products.correlate_filter, at=at)

        def run(x: Array, dy: Array) -> Array:
            images = x.transpose(last).astype(work, copy=False)
            upstream = dy.transpose(last).astype(work, copy=False)
            return correlate(images, upstream).astype(narrow, copy=False)

        return without_warnings(run)


for _each in (CONVOLUTION_2D, CONVOLUTION_3D):
    enter(kernels, _each, correlation, native_convolution)
