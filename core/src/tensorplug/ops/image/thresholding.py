"""Grayscale conversion and thresholding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import choice, flag, quoted
from tensorplug.dispatch.calls import as_tensor
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops.comparison import equal, greater, less_equal
from tensorplug.ops.counting import bincount
from tensorplug.ops.creation import arange, asarray
from tensorplug.ops.cumulative import cumulative_sum
from tensorplug.ops.elementwise import astype, where
from tensorplug.ops.kinds import real
from tensorplug.ops.movement import broadcast_to, reshape
from tensorplug.ops.reduction import argmax
from tensorplug.ops.reduction import max as max_
from tensorplug.ops.reduction import sum as sum_
from tensorplug.ops.rounding import round as round_

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["grayscale_to_rgb", "rgb_to_grayscale", "threshold"]

_LUMA: Final = (0.2989, 0.5870, 0.1140)  # CCIR 601
_LEVELS: Final = 256


def grayscale_to_rgb(image: ArrayLike) -> Tensor:
    """Return gray images with their channel repeated three times.

    Args:
        image: [..., 1], of rank 2 or more.

    Raises:
        ShapeError: the rank is below 2, or the last axis does not have length 1.

    Source: tf.image.grayscaleToRGB.

    Examples:
        >>> tp.image.grayscale_to_rgb([[[0], [255]]])
        Tensor([[[  0,   0,   0],
                 [255, 255, 255]]], dtype=int32, device='cpu')

    """
    tensor = as_tensor(image, what="grayscale_to_rgb: image")
    _check_channels(tensor, 1, "grayscale_to_rgb")
    return broadcast_to(tensor, (*tensor.shape[:-1], 3))


def rgb_to_grayscale(image: ArrayLike) -> Tensor:
    """Return ``0.2989 red + 0.5870 green + 0.1140 blue``.

    Args:
        image: [..., 3], of rank 2 or more.

    Returns:
        [..., 1] in the image's dtype. Integers are computed in float32 and truncated.

    Raises:
        ShapeError: the rank is below 2, or the last axis does not have length 3.
        DTypeError: the image holds complex numbers or strings.

    Source: tf.image.rgbToGrayscale.

    Examples:
        >>> tp.image.rgb_to_grayscale([[[255, 255, 255], [255, 0, 0]]])
        Tensor([[[254],
                 [ 76]]], dtype=int32, device='cpu')
        >>> tp.image.rgb_to_grayscale([[[1.0, 0.0, 0.0]]]).numpy().round(4)
        array([[[0.2989]]], dtype=float32)

    """
    tensor = real(image, "rgb_to_grayscale: image")
    _check_channels(tensor, 3, "rgb_to_grayscale")
    return astype(_compute_luma(tensor), tensor.dtype)


def _check_channels(image: Tensor, count: int, caller: str) -> None:
    if image.ndim < 2 or image.shape[-1] != count:
        raise ShapeError(
            f"{caller}: image must have rank 2 or more and a last axis of length {count}, got "
            f"{image.type}"
        )


def _compute_luma(image: Tensor) -> Tensor:
    wide = image if image.dtype in dt.FLOATING else astype(image, dt.float32)
    return sum_(wide * asarray(_LUMA, dtype=wide.dtype), axis=-1, keepdims=True)


def threshold(
    image: ArrayLike,
    method: Literal["binary", "otsu"] = "binary",
    inverted: bool = False,  # noqa: FBT001, FBT002  # TensorFlow.js's parameters
    thresh_value: float = 0.5,
) -> Tensor:
    """Return 255 for pixels brighter than a threshold, else 0.

    Args:
        image: [height, width, channels] with levels from 0 to 255. RGB is converted to gray
            first.
        method: "binary": the threshold is ``255 * thresh_value``; "otsu": the level
            with the largest variance between dark and bright pixels (N. Otsu, 1979), the
            lowest one if several have it.
        inverted: whether to swap 255 and 0.
        thresh_value: from 0 to 1, for "binary".

    Returns:
        int32, [height, width, 1] for RGB, else of the image's shape.

    Raises:
        ShapeError: the rank is not 3.
        DTypeError: the image does not hold real numbers.
        ArgumentError: the method is unknown, or the threshold is not a number from 0 to 1.

    Source: tf.image.threshold.

    Examples:
        >>> x = [[[10], [20], [200], [210]]]  # one row of four gray pixels
        >>> tp.image.threshold(x)[0, :, 0]
        Tensor([  0,   0, 255, 255], dtype=int32, device='cpu')
        >>> tp.image.threshold(x, "otsu", inverted=True)[0, :, 0]
        Tensor([255, 255,   0,   0], dtype=int32, device='cpu')
        >>> tp.image.threshold(x, thresh_value=0.05)[0, :, 0]  # above 12.75
        Tensor([  0, 255, 255, 255], dtype=int32, device='cpu')

    """
    tensor = as_tensor(image, what="threshold: image")
    if tensor.ndim != 3:
        raise ShapeError(f"threshold: image must have rank 3, got {tensor.type}")
    if tensor.dtype not in dt.REAL:
        raise DTypeError(f"threshold: image must hold real numbers, got {tensor.type}")
    thresh_value = dt.as_number(thresh_value)
    _check_options(method, inverted, thresh_value)
    gray = _compute_luma(tensor) if tensor.shape[2] == 3 else tensor
    if gray.dtype not in dt.FLOATING:
        gray = astype(gray, dt.float32)
    limit: Any = _find_otsu_level(gray) if method == "otsu" else thresh_value * 255
    bright = (less_equal if inverted else greater)(gray, limit)
    return astype(bright, dt.int32) * 255


def _check_options(method: object, inverted: object, thresh_value: object) -> None:
    choice(method, ("binary", "otsu"), "threshold: method")
    flag(inverted, "threshold: inverted")
    number = isinstance(thresh_value, int | float) and not isinstance(thresh_value, bool)
    if not number or not 0 <= thresh_value <= 1:  # type: ignore[operator]  # it is a number
        raise ArgumentError(
            f"threshold: thresh_value must be a number from 0 to 1, got {quoted(thresh_value)}"
        )


def _find_otsu_level(gray: Tensor) -> Tensor:
    """Return the level that divides the histogram best, or -1 if no level divides it."""
    levels = reshape(astype(round_(gray), dt.int32), (-1,))
    counts = astype(
        bincount(levels, size=_LEVELS), gray.dtype if gray.dtype is dt.float64 else dt.float32
    )
    moments = counts * arange(_LEVELS, dtype=counts.dtype)
    dark, dark_moment = cumulative_sum(counts), cumulative_sum(moments)
    total, moment = sum_(counts), sum_(moments)
    bright = total - dark
    apart = dark_moment * bright - (moment - dark_moment) * dark
    both = dark * bright
    split = where(both > 0, apart * (apart / where(both > 0, both, 1)), 0)
    best = max_(split)
    return where(equal(best, 0), -1, astype(argmax(split), gray.dtype))
