"""Separable convolution: each channel by itself, then all channels of each place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.dispatch.calls import as_tensor, chained
from tensorplug.ops.nn.convolution.convolution import conv2d
from tensorplug.ops.nn.convolution.depthwise import depthwise_conv2d

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

__all__ = ["separable_conv2d"]

Pair = tuple[int, int]


@chained
def separable_conv2d(
    x: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: int | Pair = 1,
    pad: Any = "valid",
    *,
    dilation: int | Pair = 1,
    data_format: str = "NHWC",
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

    Example::

        x, filters = tp.ones((1, 8, 8, 3)), tp.ones((3, 3, 3, 2))
        tp.nn.separable_conv2d(x, filters, tp.ones((1, 1, 6, 4)))  # float32[1,6,6,4]

    """
    what = "separable_conv2d"
    images = as_tensor(x, what=f"{what}: x")
    depthwise = as_tensor(depthwise_filter, what=f"{what}: depthwise_filter")
    pointwise = as_tensor(pointwise_filter, what=f"{what}: pointwise_filter")
    inner = depthwise_conv2d(
        images, depthwise, strides, pad, data_format=data_format, dilations=dilation
    )
    return conv2d(inner, pointwise, 1, "valid", data_format=data_format)
