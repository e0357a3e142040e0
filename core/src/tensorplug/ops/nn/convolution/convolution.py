"""Convolution in two dimensions and its two transposes, which are its gradients.

Filters are [height, width, in channels, out channels]. As usual in deep learning,
"convolution" means cross-correlation: filters are not flipped. (TensorFlow's Conv2D family.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from tensorplug.contract import shapes
from tensorplug.contract.arguments import choice
from tensorplug.dispatch.calls import as_tensor, chained, dispatch
from tensorplug.ops.movement import expand_dims, squeeze
from tensorplug.ops.nn.convolution import correlation
from tensorplug.ops.nn.convolution.depthwise import (
    DEPTHWISE_CONV2D,
    DEPTHWISE_CONV2D_BACKPROP_INPUT,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.windows import Window
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.ops.nn.convolution.correlation import Attributes
    from tensorplug.typing import ArrayLike, DataFormat, PaddingLike, PerAxis, RoundingMode

__all__ = [
    "conv1d",
    "conv2d",
    "conv2d_transpose",
]

FAMILY: correlation.Family = correlation.family(
    ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"),
    correlation.options(2, "NHWC", "NCHW"),
    lambda taps: taps[3],
)
CONV2D = FAMILY.forward
CONV2D_BACKPROP_INPUT = FAMILY.backprop_input
CONV2D_BACKPROP_FILTER = FAMILY.backprop_filter


def windows_of(x: Shape, filter: Shape, attributes: Attributes) -> tuple[Window, Window]:
    """Return the windows of height and width, from the attributes of any of the three kernels."""
    height, width = correlation.windows_of(x, filter, attributes)
    return height, width


@chained
def conv2d(
    x: ArrayLike,
    filter: ArrayLike,
    strides: PerAxis = 1,
    pad: PaddingLike = "valid",
    *,
    data_format: DataFormat = "NHWC",
    dilations: PerAxis = 1,
    dim_rounding_mode: RoundingMode | None = None,
    groups: int = 1,
) -> Tensor:
    """Return the 2-D convolution of ``x`` with ``filter``.

    ``out[n, p, q, o] = sum(x[n, p*s + i*d, q*s + j*d, c] * filter[i, j, c, o])`` over the taps
    i, j and the channels c, for strides s and dilations d; padding counts as 0.

    Args:
        x: [batch, height, width, in channels], or [batch, in channels, height, width] for
            ``data_format="NCHW"``; the batch axis may be missing.
        filter: [height, width, in channels, out channels].
        strides: steps between positions, (height, width) or one int.
        pad: "valid" (no padding), "same" (ceil(n / stride) positions), an int for every side, or
            one (before, after) pair per dimension of x, the batch included.
        data_format: "NHWC" or "NCHW", of x and of the result.
        dilations: distance between taps, (height, width) or one int.
        dim_rounding_mode: how a fractional number of positions is rounded for numeric ``pad``.
        groups: the number of groups. Each group of neighbouring channels is convolved with its
            share of the filters, whose shape is [height, width, in channels / groups, out
            channels]: the first ``out channels / groups`` filters belong to the first group, as
            in PyTorch.

    Raises:
        ShapeError: ranks, channels or window do not fit.
        DTypeError: an operand is not floating.
        ArgumentError: ``groups`` is not a positive integer.

    Examples:
        >>> x = tp.reshape(tp.arange(9.0), (1, 3, 3, 1))  # one image of one channel
        >>> sums = tp.ones((2, 2, 1, 1))
        >>> tp.nn.conv2d(x, sums)[0, ..., 0]
        Tensor([[ 8., 12.],
                [20., 24.]], dtype=float32, device='cpu')
        >>> tp.nn.conv2d(x, sums, strides=2, pad="same")[0, ..., 0]  # zeros beyond the edges
        Tensor([[ 8.,  7.],
                [13.,  8.]], dtype=float32, device='cpu')
        >>> images, filters = tp.ones((8, 32, 32, 6)), tp.ones((3, 3, 6, 16))
        >>> tp.nn.conv2d(images, filters, strides=2, pad="same").shape
        (8, 16, 16, 16)
        >>> tp.nn.conv2d(images, tp.ones((3, 3, 2, 9)), groups=3).shape
        (8, 30, 30, 9)

    """
    attributes = {
        "strides": strides,
        "pad": pad,
        "data_format": data_format,
        "dilations": dilations,
        "dim_rounding_mode": dim_rounding_mode,
    }
    if groups.__class__ is int and groups == 1:
        return correlation.per_image(
            "conv2d", x, 4, lambda images: dispatch(CONV2D, images, filter, **attributes)
        )

    def convolve(images: Tensor) -> Tensor:
        return correlation.in_groups(
            "conv2d",
            images,
            filter,
            groups,
            1 if data_format == "NCHW" else -1,
            lambda part, taps: dispatch(CONV2D, part, taps, **attributes),
            lambda part, taps: dispatch(DEPTHWISE_CONV2D, part, taps, **attributes),
            attributes,
        )

    return correlation.per_image("conv2d", x, 4, convolve)


@chained
def conv1d(
    x: ArrayLike,
    filter: ArrayLike,
    stride: int = 1,
    pad: PaddingLike = "valid",
    *,
    data_format: Literal["NWC", "NCW"] = "NWC",
    dilation: int = 1,
    dim_rounding_mode: RoundingMode | None = None,
    groups: int = 1,
) -> Tensor:
    """Return the 1-D convolution of ``x`` with ``filter``: ``conv2d`` of height 1.

    Args:
        x: [batch, width, in channels], or [batch, in channels, width] for
            ``data_format="NCW"``; the batch axis may be missing.
        filter: [width, in channels, out channels].
        stride: steps between positions.
        pad: "valid", "same", an int for both sides, or one (before, after) pair per dimension
            of x.
        data_format: "NWC" or "NCW", of x and of the result.
        dilation: distance between taps.
        dim_rounding_mode: how a fractional number of positions is rounded for numeric ``pad``.
        groups: as for ``conv2d``; with groups, the filter is [width, in channels / groups, out
            channels].

    Raises:
        ArgumentError: the data format or the padding is unknown.
        ShapeError: ranks, channels or window do not fit.
        DTypeError: an operand is not floating.

    Source: TensorFlow.js's conv1d.

    Examples:
        >>> x = tp.reshape(tp.asarray([1.0, 2.0, 4.0, 7.0]), (1, 4, 1))
        >>> differences = tp.reshape(tp.asarray([-1.0, 1.0]), (2, 1, 1))
        >>> tp.nn.conv1d(x, differences)[0, :, 0]
        Tensor([1., 2., 3.], dtype=float32, device='cpu')
        >>> tp.nn.conv1d(x, differences, stride=2)[0, :, 0]
        Tensor([1., 3.], dtype=float32, device='cpu')

    """
    choice(data_format, ("NWC", "NCW"), "conv1d: data_format")
    height = data_format.index("W")
    taps = as_tensor(filter, what="conv1d: filter")

    def convolve(rows: Tensor) -> Tensor:
        wide = conv2d(
            expand_dims(rows, axis=height),
            expand_dims(taps, axis=0),
            (1, shapes.index(stride, "conv1d: stride")),
            _flatten_padding(pad, height),
            data_format="NHWC" if data_format == "NWC" else "NCHW",
            dilations=(1, shapes.index(dilation, "conv1d: dilation")),
            dim_rounding_mode=dim_rounding_mode,
            groups=groups,
        )
        return squeeze(wide, axis=height)

    return correlation.per_image("conv1d", x, 3, convolve)


def _flatten_padding(pad: Any, height: int) -> Any:
    """Return a padding of the width as one of height and width, without padding the height."""
    if isinstance(pad, str):
        return pad
    if isinstance(pad, list | tuple):
        return (*pad[:height], (0, 0), *pad[height:])
    pairs = [(0, 0)] * 4
    pairs[height + 1] = (pad, pad)
    return pairs


@chained
def conv2d_transpose(
    x: ArrayLike,
    filter: ArrayLike,
    output_shape: Sequence[SupportsIndex],
    strides: PerAxis = 1,
    pad: PaddingLike = "valid",
    *,
    data_format: DataFormat = "NHWC",
    dilations: PerAxis = 1,
    dim_rounding_mode: RoundingMode | None = None,
    groups: int = 1,
) -> Tensor:
    """Return the transpose of ``conv2d``: every element is spread over its window.

    It is the gradient of the convolution from ``output_shape`` to the shape of ``x``, not its
    inverse.

    Args:
        x: [batch, height, width, in channels]; the batch axis may be missing, in
            ``output_shape`` too.
        filter: [height, width, out channels, in channels], as in that convolution.
        output_shape: of the result, [batch, height, width, out channels].
        strides: steps between the elements of x, (height, width) or one int.
        pad: of that convolution: "valid", "same", an int or pairs.
        data_format: "NHWC" or "NCHW", of x, ``output_shape`` and the result.
        dilations: distance between taps, (height, width) or one int.
        dim_rounding_mode: of that convolution.
        groups: of that convolution; with groups, the filter is [height, width, out channels /
            groups, in channels].

    Raises:
        ShapeError: that convolution does not give the shape of x, or groups do not fit.
        DTypeError: an operand is not floating.
        ArgumentError: ``groups`` is not a positive integer.

    Source: TensorFlow.js's conv2dTranspose.

    Examples:
        >>> x = tp.reshape(tp.asarray([1.0, 2.0, 3.0, 4.0]), (1, 2, 2, 1))
        >>> copies = tp.ones((2, 2, 1, 1))
        >>> tp.nn.conv2d_transpose(x, copies, (1, 4, 4, 1), strides=2)[0, ..., 0]
        Tensor([[1., 1., 2., 2.],
                [1., 1., 2., 2.],
                [3., 3., 4., 4.],
                [3., 3., 4., 4.]], dtype=float32, device='cpu')

    """
    return correlation.transposed(
        "conv2d_transpose",
        CONV2D_BACKPROP_INPUT,
        x,
        filter,
        output_shape,
        groups,
        DEPTHWISE_CONV2D_BACKPROP_INPUT,
        strides=strides,
        pad=pad,
        data_format=data_format,
        dilations=dilations,
        dim_rounding_mode=dim_rounding_mode,
    )
