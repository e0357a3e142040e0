"""Grayscale conversion and thresholding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.plugin import arguments, as_tensor, kinds
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
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
    return tp.broadcast_to(tensor, (*tensor.shape[:-1], 3))


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
    tensor = kinds.real(image, "rgb_to_grayscale: image")
    _check_channels(tensor, 3, "rgb_to_grayscale")
    return tp.astype(_compute_luma(tensor), tensor.dtype)


def _check_channels(image: Tensor, count: int, caller: str) -> None:
    if image.ndim < 2 or image.shape[-1] != count:
        raise ShapeError(
            f"{caller}: image must have rank 2 or more and a last axis of length {count}, got "
            f"{image.type}"
        )


def _compute_luma(image: Tensor) -> Tensor:
    wide = image if image.dtype in dt.FLOATING else tp.astype(image, dt.float32)
    return tp.sum(wide * tp.asarray(_LUMA, dtype=wide.dtype), axis=-1, keepdims=True)


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
        gray = tp.astype(gray, dt.float32)
    limit: Any = _find_otsu_level(gray) if method == "otsu" else thresh_value * 255
    bright = (tp.less_equal if inverted else tp.greater)(gray, limit)
    return tp.astype(bright, dt.int32) * 255


def _check_options(method: object, inverted: object, thresh_value: object) -> None:
    arguments.choice(method, ("binary", "otsu"), "threshold: method")
    arguments.flag(inverted, "threshold: inverted")
    number = isinstance(thresh_value, int | float) and not isinstance(thresh_value, bool)
    if not number or not 0 <= thresh_value <= 1:  # type: ignore[operator]  # it is a number
        raise ArgumentError(
            f"threshold: thresh_value must be a number from 0 to 1, "
            f"got {arguments.quoted(thresh_value)}"
        )


def _find_otsu_level(gray: Tensor) -> Tensor:
    """Return the level that divides the histogram best, or -1 if no level divides it."""
    levels = tp.reshape(tp.astype(tp.round(gray), dt.int32), (-1,))
    counts = tp.astype(
        tp.bincount(levels, size=_LEVELS), gray.dtype if gray.dtype is dt.float64 else dt.float32
    )
    moments = counts * tp.arange(_LEVELS, dtype=counts.dtype)
    dark, dark_moment = tp.cumulative_sum(counts), tp.cumulative_sum(moments)
    total, moment = tp.sum(counts), tp.sum(moments)
    bright = total - dark
    apart = dark_moment * bright - (moment - dark_moment) * dark
    both = dark * bright
    split = tp.where(both > 0, apart * (apart / tp.where(both > 0, both, 1)), 0)
    best = tp.max(split)
    return tp.where(tp.equal(best, 0), -1, tp.astype(tp.argmax(split), gray.dtype))
