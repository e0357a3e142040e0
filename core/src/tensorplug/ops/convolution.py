"""Convolution in two dimensions and its two transposes, which are its gradients.

Filters are [height, width, in channels, out channels]. Like everywhere in this field the
"convolution" is a cross-correlation: filters are not flipped. (TensorFlow's Conv2D family.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tensorplug import attributes
from tensorplug import dtypes as dt
from tensorplug.dispatch import chained, dispatch
from tensorplug.errors import ShapeError
from tensorplug.spec import KernelSpec, TensorType
from tensorplug.windows import (
    Window,
    arranged,
    pad_attribute,
    pair_attribute,
    rounding_attribute,
    spatial_axes,
    windows,
)

if TYPE_CHECKING:
    from tensorplug.shapes import Shape
    from tensorplug.tensor import Tensor
    from tensorplug.windows import Padding

__all__ = [
    "conv2d",
]

Pair = tuple[int, int]
Attributes = Mapping[str, Any]


def geometry(
    x: Shape,
    filter: Shape,
    *,
    strides: Pair,
    pad: Padding,
    data_format: str,
    dilations: Pair,
    dim_rounding_mode: str | None,
) -> tuple[Window, Window]:
    """Return the two windows of a convolution of shapes ``x`` and ``filter``.

    Raises:
        ShapeError: when ranks or channels do not fit.

    """
    if len(x) != 4 or len(filter) != 4:
        raise ShapeError(f"x and filter must have rank 4, got {list(x)} and {list(filter)}")
    spatial = spatial_axes(data_format)
    channels = x[3 if data_format == "NHWC" else 1]
    if channels != filter[2]:
        raise ShapeError(f"x has {channels} channels, but the filter takes {filter[2]}")
    height_width = (x[spatial[0]], x[spatial[1]])
    taps = (filter[0], filter[1])
    height, width = windows(
        height_width, taps, strides, dilations, pad, dim_rounding_mode, spatial
    )
    return height, width


def output_shape(x: Shape, filter: Shape, at: tuple[Window, Window], data_format: str) -> Shape:
    """Return the shape of the convolution's output."""
    return arranged(x[0], (at[0].out, at[1].out), filter[3], data_format)


_OPTIONS = {
    "strides": pair_attribute(),
    "pad": pad_attribute(),
    "data_format": attributes.choice("NHWC", "NCHW", default="NHWC"),
    "dilations": pair_attribute(1),
    "dim_rounding_mode": rounding_attribute(),
}


def window_attributes(attributes: Attributes) -> Attributes:
    """Return those attributes of one of the three kernels that say how the window moves."""
    return {name: attributes[name] for name in _OPTIONS}


def windows_of(x: Shape, filter: Shape, attributes: Attributes) -> tuple[Window, Window]:
    """Return ``geometry`` for the attributes of any of the three kernels."""
    return geometry(x, filter, **window_attributes(attributes))


def _output(x: Shape, filter: Shape, attributes: Attributes) -> Shape:
    return output_shape(x, filter, windows_of(x, filter, attributes), attributes["data_format"])


def _conv2d(x: TensorType, filter: TensorType, *, attributes: Attributes) -> TensorType:
    return TensorType(x.dtype, _output(x.shape, filter.shape, attributes))


def _check_dy(dy: TensorType, expected: Shape) -> None:
    if dy.shape != expected:
        raise ShapeError(f"dy must have shape {list(expected)}")


def _backprop_input(
    dy: TensorType, filter: TensorType, *, attributes: Attributes, input_shape: Shape
) -> TensorType:
    _check_dy(dy, _output(input_shape, filter.shape, attributes))
    return TensorType(dy.dtype, input_shape)


def _backprop_filter(
    x: TensorType, dy: TensorType, *, attributes: Attributes, filter_shape: Shape
) -> TensorType:
    _check_dy(dy, _output(x.shape, filter_shape, attributes))
    return TensorType(dy.dtype, filter_shape)


CONV2D = KernelSpec(
    "Conv2D",
    ("x", "filter"),
    _conv2d,
    attributes=_OPTIONS,
    accepts=dt.FLOATING,
    promote=("x", "filter"),
)
CONV2D_BACKPROP_INPUT = KernelSpec(
    "Conv2DBackpropInput",
    ("dy", "filter"),
    _backprop_input,
    attributes={**_OPTIONS, "input_shape": attributes.shape()},
    accepts=dt.FLOATING,
    promote=("dy", "filter"),
)
CONV2D_BACKPROP_FILTER = KernelSpec(
    "Conv2DBackpropFilter",
    ("x", "dy"),
    _backprop_filter,
    attributes={**_OPTIONS, "filter_shape": attributes.shape()},
    accepts=dt.FLOATING,
    promote=("x", "dy"),
)


@chained
def conv2d(
    x: Any,
    filter: Any,
    strides: int | Pair = 1,
    pad: Any = "valid",
    *,
    data_format: str = "NHWC",
    dilations: int | Pair = 1,
    dim_rounding_mode: str | None = None,
) -> Tensor:
    """Return the 2-D convolution of ``x`` with ``filter``.

    Args:
        x: [batch, height, width, in channels], or [batch, in channels, height, width] for
            ``data_format="NCHW"``.
        filter: [height, width, in channels, out channels].
        strides: steps between positions, (height, width) or one int.
        pad: "valid" (none), "same" (ceil(n / stride) positions), an int for every side, or one
            (before, after) pair per dimension of x.
        data_format: "NHWC" or "NCHW", of x and of the result.
        dilations: distance between taps, (height, width) or one int.
        dim_rounding_mode: how a fractional number of positions is rounded for numeric ``pad``.

    Raises:
        ShapeError: ranks, channels or window do not fit.
        DTypeError: operands that are not floating.

    """
    return dispatch(
        CONV2D,
        x,
        filter,
        strides=strides,
        pad=pad,
        data_format=data_format,
        dilations=dilations,
        dim_rounding_mode=dim_rounding_mode,
    )
