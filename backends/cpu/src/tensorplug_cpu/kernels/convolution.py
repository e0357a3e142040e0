"""Convolution in two and three dimensions: what ``correlation`` computes, in any data format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tensorplug.plugin import (
    CONVOLUTION_2D,
    CONVOLUTION_3D,
    ConvolutionFamily,
    KernelTable,
    Shape,
    TensorType,
    Windows,
    convolution_windows,
)
from tensorplug_cpu import correlation
from tensorplug_cpu.arrays import working
from tensorplug_cpu.floating_point import without_warnings
from tensorplug_cpu.sliding_windows import layout

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = KernelTable()

Attributes = dict[str, Any]


class Products(Protocol):
    """The module that computes a family on arrays with channels last."""

    def correlate(self, x: Array, filter: Array, at: Windows) -> Array:
        """Return the convolution."""

    def spread(self, dy: Array, filter: Array, at: Windows) -> Array:
        """Return the gradient of x."""

    def correlate_filter(self, x: Array, dy: Array, at: Windows) -> Array:
        """Return the gradient of the filter."""


def enter(kernels: KernelTable, family: ConvolutionFamily, products: Products) -> None:
    """Register the three kernels of ``family``; float16 works in float32 and is rounded once."""

    @kernels.prepare(family.forward)
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

        def run(x: Array, filter: Array) -> Array:
            images = x.transpose(last).astype(work, copy=False)
            wide = products.correlate(images, filter.astype(work, copy=False), at)
            return wide.transpose(back).astype(narrow, copy=False)

        return without_warnings(run)

    @kernels.prepare(family.backprop_input)
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

        def run(dy: Array, filter: Array) -> Array:
            upstream = dy.transpose(last).astype(work, copy=False)
            wide = products.spread(upstream, filter.astype(work, copy=False), at)
            return wide.transpose(back).astype(narrow, copy=False)

        return without_warnings(run)

    @kernels.prepare(family.backprop_filter)
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

        def run(x: Array, dy: Array) -> Array:
            images = x.transpose(last).astype(work, copy=False)
            upstream = dy.transpose(last).astype(work, copy=False)
            return products.correlate_filter(images, upstream, at).astype(narrow, copy=False)

        return without_warnings(run)


for _each in (CONVOLUTION_2D, CONVOLUTION_3D):
    enter(kernels, _each, correlation)
