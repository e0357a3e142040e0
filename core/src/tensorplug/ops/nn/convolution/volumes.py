"""Convolution in three dimensions and its two transposes, which are its gradients.

Filters are [depth, height, width, in channels, out channels]. (TensorFlow's Conv3D family.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.nn.convolution import correlation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, PaddingLike, PerAxis, RoundingMode

__all__ = [
    "conv3d",
    "conv3d_transpose",
]

FAMILY: correlation.Family = correlation.family(
    ("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"),
    correlation.options(3, "NDHWC", "NCDHW"),
    lambda taps: taps[4],
)
CONV3D = FAMILY.forward
CONV3D_BACKPROP_INPUT = FAMILY.backprop_input
CONV3D_BACKPROP_FILTER = FAMILY.backprop_filter


def conv3d(
    x: ArrayLike,
    filter: ArrayLike,
    strides: PerAxis = 1,
    pad: PaddingLike = "valid",
    *,
    data_format: Literal["NDHWC", "NCDHW"] = "NDHWC",
    dilations: PerAxis = 1,
    dim_rounding_mode: RoundingMode | None = None,
    groups: int = 1,
) -> Tensor:
    """Return the 3-D convolution of ``x`` with ``filter``: ``conv2d`` with a depth axis.

    Args:
        x: [batch, depth, height, width, in channels], or [batch, in channels, depth, height,
            width] for ``data_format="NCDHW"``; the batch axis may be missing.
        filter: [depth, height, width, in channels, out channels].
        strides: steps between positions, (depth, height, width) or one int.
        pad: "valid" (no padding), "same" (ceil(n / stride) positions), an int for every side, or
            one (before, after) pair per dimension of x, the batch included.
        data_format: "NDHWC" or "NCDHW", of x and of the result.
        dilations: distance between taps, (depth, height, width) or one int.
        dim_rounding_mode: how a fractional number of positions is rounded for numeric ``pad``.
        groups: as for ``conv2d``; with groups, the filter is [depth, height, width, in channels
            / groups, out channels].

    Raises:
        ShapeError: ranks, channels or window do not fit.
        DTypeError: an operand is not floating.
        ArgumentError: ``groups`` is not a positive integer.

    Source: TensorFlow.js's conv3d.

    Examples:
        >>> x = tp.ones((1, 4, 4, 4, 1))
        >>> y = tp.nn.conv3d(x, tp.ones((2, 2, 2, 1, 1)), strides=2)
        >>> y.shape, y[0, 0, 0, 0, 0].item()
        ((1, 2, 2, 2, 1), 8.0)

    """

    def convolve(volumes: Tensor, taps: Any) -> Tensor:
        return dispatch(
            CONV3D,
            volumes,
            taps,
            strides=strides,
            pad=pad,
            data_format=data_format,
            dilations=dilations,
            dim_rounding_mode=dim_rounding_mode,
        )

    def convolve_groups(volumes: Tensor) -> Tensor:
        channels = 1 if data_format == "NCDHW" else -1
        return correlation.in_groups("conv3d", volumes, filter, groups, channels, convolve)

    plain = groups.__class__ is int and groups == 1
    return correlation.per_image(
        "conv3d", x, 5, (lambda volumes: convolve(volumes, filter)) if plain else convolve_groups
    )


def conv3d_transpose(
    x: ArrayLike,
    filter: ArrayLike,
    output_shape: Sequence[SupportsIndex],
    strides: PerAxis = 1,
    pad: PaddingLike = "valid",
    *,
    data_format: Literal["NDHWC", "NCDHW"] = "NDHWC",
    dilations: PerAxis = 1,
    dim_rounding_mode: RoundingMode | None = None,
    groups: int = 1,
) -> Tensor:
    """Return the transpose of ``conv3d``: every element is spread over its window.

    It is the gradient of the convolution from ``output_shape`` to the shape of ``x``, not its
    inverse.

    Args:
        x: [batch, depth, height, width, in channels]; the batch axis may be missing, in
            ``output_shape`` too.
        filter: [depth, height, width, out channels, in channels], as in that convolution.
        output_shape: of the result, [batch, depth, height, width, out channels].
        strides: steps between the elements of x, (depth, height, width) or one int.
        pad: of that convolution: "valid", "same", an int or pairs.
        data_format: "NDHWC" or "NCDHW", of x, ``output_shape`` and the result.
        dilations: distance between taps, (depth, height, width) or one int.
        dim_rounding_mode: of that convolution.
        groups: of that convolution; with groups, the filter is [depth, height, width, out
            channels / groups, in channels].

    Raises:
        ShapeError: that convolution does not give the shape of x, or groups do not fit.
        DTypeError: an operand is not floating.
        ArgumentError: ``groups`` is not a positive integer.

    Source: TensorFlow.js's conv3dTranspose.

    Examples:
        >>> x = tp.reshape(tp.asarray([1.0, 2.0]), (1, 2, 1, 1, 1))
        >>> y = tp.nn.conv3d_transpose(x, tp.ones((3, 1, 1, 1, 1)), (1, 5, 1, 1, 1), strides=2)
        >>> y[0, :, 0, 0, 0]  # the windows overlap in the middle
        Tensor([1., 1., 3., 2., 2.], dtype=float32, device='cpu')

    """
    return correlation.transposed(
        "conv3d_transpose",
        CONV3D_BACKPROP_INPUT,
        x,
        filter,
        output_shape,
        groups,
        strides=strides,
        pad=pad,
        data_format=data_format,
        dilations=dilations,
        dim_rounding_mode=dim_rounding_mode,
    )
