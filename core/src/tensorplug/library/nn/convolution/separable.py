"""Separable convolution: each channel by itself, then all channels of each place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorplug as tp
from tensorplug.plugin import as_tensor, chained

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike, DataFormat, PaddingLike, PerAxis

__all__ = ["separable_conv2d"]


@chained
def separable_conv2d(
    x: ArrayLike,
    depthwise_filter: ArrayLike,
    pointwise_filter: ArrayLike,
    strides: PerAxis = 1,
    pad: PaddingLike = "valid",
    *,
    dilation: PerAxis = 1,
    data_format: DataFormat = "NHWC",
) -> Tensor:
    """Return a depthwise convolution of ``x`` followed by a 1 by 1 convolution.

    Args:
        x: [batch, height, width, channels], or [batch, channels, height, width] for
            ``data_format="NCHW"``; the batch axis may be missing.
        depthwise_filter: [height, width, channels, multiplier].
        pointwise_filter: [1, 1, channels * multiplier, out channels].
        strides: of the depthwise convolution, (height, width) or one int.
        pad: of the depthwise convolution, as for ``depthwise_conv2d``.
        dilation: of the depthwise convolution, (height, width) or one int.
        data_format: "NHWC" or "NCHW", of x and of the result.

    Raises:
        ShapeError: ranks, channels or window do not fit.
        DTypeError: an operand is not floating.

    Source: TensorFlow.js's separableConv2d.

    Examples:
        >>> x, filters = tp.ones((1, 8, 8, 3)), tp.ones((3, 3, 3, 2))
        >>> y = tp.nn.separable_conv2d(x, filters, tp.ones((1, 1, 6, 4)))
        >>> y.shape, y[0, 0, 0, 0].item()  # 9 taps times 6 channels
        ((1, 6, 6, 4), 54.0)

    """
    what = "separable_conv2d"
    images = as_tensor(x, what=f"{what}: x")
    depthwise = as_tensor(depthwise_filter, what=f"{what}: depthwise_filter")
    pointwise = as_tensor(pointwise_filter, what=f"{what}: pointwise_filter")
    inner = tp.nn.depthwise_conv2d(
        images, depthwise, strides, pad, data_format=data_format, dilations=dilation
    )
    return tp.nn.conv2d(inner, pointwise, 1, "valid", data_format=data_format)
