"""Depthwise convolution, which convolves each channel separately, and its two transposes.

Filters are [height, width, in channels, multiplier]; output channel ``c * multiplier + m`` is
channel c convolved with ``filter[:, :, c, m]``. (TensorFlow's DepthwiseConv2dNative family.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.dispatch.calls import chained, dispatch
from tensorplug.ops.nn.convolution import correlation

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, DataFormat, PaddingLike, PerAxis, RoundingMode

__all__ = [
    "depthwise_conv2d",
]

FAMILY: correlation.Family = correlation.family(
    (
        "DepthwiseConv2dNative",
        "DepthwiseConv2dNativeBackpropInput",
        "DepthwiseConv2dNativeBackpropFilter",
    ),
    correlation.options(2, "NHWC", "NCHW"),
    lambda taps: taps[2] * taps[3],
)
DEPTHWISE_CONV2D = FAMILY.forward
DEPTHWISE_CONV2D_BACKPROP_INPUT = FAMILY.backprop_input
DEPTHWISE_CONV2D_BACKPROP_FILTER = FAMILY.backprop_filter


@chained
def depthwise_conv2d(
    x: ArrayLike,
    filter: ArrayLike,
    strides: PerAxis = 1,
    pad: PaddingLike = "valid",
    *,
    data_format: DataFormat = "NHWC",
    dilations: PerAxis = 1,
    dim_rounding_mode: RoundingMode | None = None,
) -> Tensor:
    """Return the 2-D convolution of each channel of ``x`` with its own filters.

    ``out[n, p, q, c*m + k] = sum(x[n, p*s + i*d, q*s + j*d, c] * filter[i, j, c, k])`` over the
    taps i, j, for strides s, dilations d and m filters per channel; padding counts as 0.

    Args:
        x: [batch, height, width, channels], or [batch, channels, height, width] for
            ``data_format="NCHW"``; the batch axis may be missing.
        filter: [height, width, channels, multiplier].
        strides: steps between positions, (height, width) or one int.
        pad: "valid" (no padding), "same" (ceil(n / stride) positions), an int for every side, or
            one (before, after) pair per dimension of x, the batch included.
        data_format: "NHWC" or "NCHW", of x and of the result.
        dilations: distance between taps, (height, width) or one int.
        dim_rounding_mode: how a fractional number of positions is rounded for numeric ``pad``.

    Raises:
        ShapeError: ranks, channels or window do not fit.
        DTypeError: an operand is not floating.

    Source: TensorFlow.js's depthwiseConv2d.

    Examples:
        >>> x = [[[[1.0, 10.0], [2.0, 20.0]]]]  # one image of 1 by 2 pixels, with two channels
        >>> filters = [[[[1.0, -1.0], [1.0, -1.0]], [[1.0, 1.0], [1.0, 1.0]]]]
        >>> tp.nn.depthwise_conv2d(x, filters)  # sum and difference of each channel
        Tensor([[[[ 3.,  1., 30., 10.]]]], dtype=float32, device='cpu')

    """
    return correlation.per_image(
        "depthwise_conv2d",
        x,
        4,
        lambda images: dispatch(
            DEPTHWISE_CONV2D,
            images,
            filter,
            strides=strides,
            pad=pad,
            data_format=data_format,
            dilations=dilations,
            dim_rounding_mode=dim_rounding_mode,
        ),
    )
