"""Grayscale morphological dilation and its two gradient kernels.

``out[n, p, q, c] = max(x[n, p*s + i*d, q*s + j*d, c] + filter[i, j, c])`` over the taps i, j that
lie on the image. (TensorFlow's Dilation2D family.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import choice
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.contract.windows import axes_attribute, pad_attribute, windows
from tensorplug.dispatch.calls import chained, dispatch
from tensorplug.errors import ShapeError
from tensorplug.ops.nn.convolution import correlation
from tensorplug.ops.nn.convolution.patches import from_channels_last, to_channels_last

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import InputTypes
    from tensorplug.contract.windows import Windows
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.ops.nn.convolution.correlation import Attributes
    from tensorplug.typing import ArrayLike, DataFormat, PaddingLike, PerAxis

__all__ = [
    "dilation2d",
]


def windows_of(x: Shape, filter: Shape, attributes: Attributes) -> Windows:
    """Return the windows of height and width.

    ``x``: the shape of the images; ``filter``: the shape of the filters; ``attributes``: those of
    the kernel.

    Raises:
        ShapeError: ranks or channels do not fit, or the window does not fit.

    """
    if len(x) != 4 or len(filter) != 3:
        raise ShapeError(f"x must have rank 4 and filter rank 3, got {list(x)} and {list(filter)}")
    if x[3] != filter[2]:
        raise ShapeError(f"x has {x[3]} channels, but the filter has {filter[2]}")
    strides, dilations = attributes["strides"], attributes["dilations"]
    return windows(x[1:3], filter[:2], strides, dilations, attributes["pad"], "floor", (1, 2))


def _infer_dilation2d(x: TensorType, filter: TensorType, *, attributes: Attributes) -> TensorType:
    height, width = windows_of(x.shape, filter.shape, attributes)
    return TensorType(x.dtype, (x.shape[0], height.out, width.out, x.shape[3]))


def _check_dy(x: TensorType, filter: TensorType, dy: TensorType, attributes: Attributes) -> None:
    expected = _infer_dilation2d(x, filter, attributes=attributes)
    if dy.shape != expected.shape:
        raise ShapeError(f"dy must have shape {list(expected.shape)}")


def _infer_dilation2d_backprop_input(
    x: TensorType, filter: TensorType, dy: TensorType, *, attributes: Attributes
) -> TensorType:
    _check_dy(x, filter, dy, attributes)
    return x


def _infer_dilation2d_backprop_filter(
    x: TensorType, filter: TensorType, dy: TensorType, *, attributes: Attributes
) -> TensorType:
    _check_dy(x, filter, dy, attributes)
    return filter


def _read_operands(known: InputTypes) -> tuple[Shape, Shape]:
    return known["x"].shape, known["filter"].shape[:-1]


_OPTIONS = {
    "strides": axes_attribute(2),
    "dilations": axes_attribute(2, 1),
    "pad": pad_attribute(2, _read_operands),
}

DILATION2D = KernelSpec(
    "Dilation2D",
    ("x", "filter"),
    _infer_dilation2d,
    attributes=_OPTIONS,
    accepts=dt.REAL,
    promote=("x", "filter"),
    fold=("x",),
)
DILATION2D_BACKPROP_INPUT = KernelSpec(
    "Dilation2DBackpropInput",
    ("x", "filter", "dy"),
    _infer_dilation2d_backprop_input,
    attributes=_OPTIONS,
    accepts=dt.FLOATING,
    promote=("x", "filter", "dy"),
    linear=("dy",),
    fold=("x", "dy"),
)
DILATION2D_BACKPROP_FILTER = KernelSpec(
    "Dilation2DBackpropFilter",
    ("x", "filter", "dy"),
    _infer_dilation2d_backprop_filter,
    attributes=_OPTIONS,
    accepts=dt.FLOATING,
    promote=("x", "filter", "dy"),
    linear=("dy",),
)


@chained
def dilation2d(
    x: ArrayLike,
    filter: ArrayLike,
    strides: PerAxis = 1,
    pad: PaddingLike = "valid",
    *,
    dilations: PerAxis = 1,
    data_format: DataFormat = "NHWC",
) -> Tensor:
    """Return the grayscale dilation of ``x`` by ``filter``: the maximum of ``x + filter``.

    ``out[n, p, q, c] = max(x[n, p*s + i*d, q*s + j*d, c] + filter[i, j, c])`` over the taps i, j
    that lie on the image, for strides s and dilations d: padding is ignored, NaN wins.
    If no tap lies on the image, the result is -inf, or the lowest integer of the dtype.

    Args:
        x: [batch, height, width, channels], or [batch, channels, height, width] for
            ``data_format="NCHW"``; the batch axis may be missing.
        filter: [height, width, channels].
        strides: steps between positions, (height, width) or one int.
        pad: "valid" (no padding), "same" (ceil(n / stride) positions), an int for every side, or
            one (before, after) pair per dimension of an NHWC image, the batch included.
        dilations: distance between taps, (height, width) or one int.
        data_format: "NHWC" or "NCHW", of x and of the result.

    The gradient flows to the first largest sum of each window, in row-major order.

    Raises:
        ArgumentError: an unknown data format.
        ShapeError: ranks, channels or window do not fit.

    Source: TensorFlow.js's dilation2d.

    Examples:
        >>> x = tp.reshape(tp.asarray([0.0, 0.0, 5.0, 0.0, 1.0]), (1, 1, 5, 1))
        >>> tp.nn.dilation2d(x, tp.zeros((1, 3, 1)), pad="same")[0, 0, :, 0]
        Tensor([0., 5., 5., 5., 1.], dtype=float32, device='cpu')

    """
    choice(data_format, ("NHWC", "NCHW"), "dilation2d: data_format")

    def dilate(images: Tensor) -> Tensor:
        last = to_channels_last(images, data_format) if images.ndim == 4 else images
        out = dispatch(DILATION2D, last, filter, strides=strides, pad=pad, dilations=dilations)
        return from_channels_last(out, data_format)

    return correlation.per_image("dilation2d", x, 4, dilate)
