"""Rotated, mirrored and projected images."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np

from tensorplug.contract import attributes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted, real
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import dispatch
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.ops.arrangement import flip
from tensorplug.ops.image.resizing import size_attribute
from tensorplug.ops.kinds import images
from tensorplug.ops.movement import expand_dims, squeeze

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tensorplug.contract.dtypes import Scalar
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = [
    "flip_left_right",
    "flip_up_down",
    "rotate_with_offset",
    "transform",
]

Pair = tuple[int, int]


def _check_rank(image: TensorType) -> None:
    if image.rank != 4:
        raise ShapeError("image must have rank 4: [batch, height, width, channels]")


# Mirroring ---------------------------------------------------------------------------------


def _infer_flip_left_right(image: TensorType) -> TensorType:
    _check_rank(image)
    return image


FLIP_LEFT_RIGHT = KernelSpec(
    "FlipLeftRight",
    ("image",),
    _infer_flip_left_right,
    accepts=dt.FIXED,
    exact=True,
    linear=("image",),
    fold=("image",),
)


def flip_left_right(image: ArrayLike) -> Tensor:
    """Return images mirrored from left to right.

    Args:
        image: [batch, height, width, channels], or one image [height, width, channels], of any
            dtype.

    Raises:
        ShapeError: the rank is neither 3 nor 4.

    Source: TensorFlow.js's image.flipLeftRight.

    Examples:
        >>> tp.image.flip_left_right([[[[1], [2]], [[3], [4]]]])[0, ..., 0]
        Tensor([[2, 1],
                [4, 3]], dtype=int32, device='cpu')

    """
    tensor = images(image, "flip_left_right: image")
    if tensor.ndim == 4:
        return dispatch(FLIP_LEFT_RIGHT, tensor)
    return squeeze(dispatch(FLIP_LEFT_RIGHT, expand_dims(tensor, axis=0)), 0)


def flip_up_down(image: ArrayLike) -> Tensor:
    """Return images turned upside down, by reflection. Arguments and errors: ``flip_left_right``.

    Source: TensorFlow's image.flip_up_down.

    Examples:
        >>> tp.image.flip_up_down([[[1], [2]], [[3], [4]]])[..., 0]
        Tensor([[3, 4],
                [1, 2]], dtype=int32, device='cpu')

    """
    return flip(images(image, "flip_up_down: image"), axis=-3)


# Rotation ----------------------------------------------------------------------------------


def _read_number(value: Any, known: InputTypes) -> float:
    number: Any = attributes.number().canonical(value, known)
    if isinstance(number, bool | complex) or not math.isfinite(number):
        raise ArgumentError(f"must be a finite number, got {quoted(value)}")
    return float(number)


def _read_center(value: Any, known: InputTypes) -> tuple[float, float]:
    if isinstance(value, list | tuple):
        if len(value) != 2:
            raise ArgumentError(f"must be a number or a pair (x, y), got {quoted(value)}")
        return _read_number(value[0], known), _read_number(value[1], known)
    both = _read_number(value, known)
    return both, both


def _read_fill(value: Any, known: InputTypes) -> tuple[float, ...]:
    """Return one number per channel."""
    image: TensorType = known["image"]
    levels = tuple(map(dt.as_number, value if isinstance(value, list | tuple) else (value,)))
    for level in levels:
        if isinstance(level, bool) or not isinstance(level, int | float):
            raise ArgumentError(f"must be a number, or one per channel, got {quoted(value)}")
        real(level, "the number")  # refuses what does not fit into float64
        dt.check_number(level, image.dtype)
    channels = image.shape[-1] if image.rank else 0
    if not isinstance(value, list | tuple):
        return levels * channels
    if len(value) == 3 and channels <= 4:  # red, green and blue; alpha is opaque
        return (*levels, 255)[:channels]
    if len(value) != channels:
        raise ArgumentError(f"must have {channels} numbers, one per channel, got {len(value)}")
    return levels


def _infer_rotate_with_offset(image: TensorType) -> TensorType:
    _check_rank(image)
    return image


ROTATE_WITH_OFFSET = KernelSpec(
    "RotateWithOffset",
    ("image",),
    _infer_rotate_with_offset,
    attributes={
        "radians": Attribute(_read_number, form="finite float"),
        "fill_value": Attribute(_read_fill, 0, "tuple of ints or floats, one per channel"),
        "center": Attribute(_read_center, 0.5, "pair of finite floats, (x, y)"),
    },
    accepts=dt.REAL,
    linear=("image",),
    linear_with={"fill_value": 0},
    fold=("image",),
)


def rotation_sources(
    height: int, width: int, radians: float, center: tuple[float, float]
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the source pixel of each place of a rotated image, and whether it exists.

    Pixels are numbered in row-major order; the number is 0 for pixels that do not exist.

    ``height``: of the image; ``width``: of the image; ``radians``: the angle; ``center``: the
    point that stays in place, in parts of width and height.
    """
    center_x, center_y = center[0] * width, center[1] * height
    x = np.arange(width)[None, :] - center_x
    y = np.arange(height)[:, None] - center_y
    sine, cosine = math.sin(radians), math.cos(radians)
    column = _round_half_up(x * cosine - y * sine + center_x)
    row = _round_half_up(x * sine + y * cosine + center_y)
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    pixel = np.where(inside, row * width + column, 0).astype(np.int32)
    return pixel.reshape(-1), inside.reshape(-1)


def _round_half_up(at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round halves upwards, as JavaScript does."""
    below = np.floor(at)
    return below + (at - below >= 0.5)


def rotate_with_offset(
    image: ArrayLike,
    radians: float,
    fill_value: float | Sequence[float] = 0,
    center: float | Sequence[float] = 0.5,
) -> Tensor:
    """Return images rotated counterclockwise by ``radians``, with nearest-neighbour sampling.

    Args:
        image: [batch, height, width, channels], of any real dtype.
        radians: the angle.
        fill_value: for places outside the image: a number, one per channel, or (red, green,
            blue) with an alpha channel of 255.
        center: the centre of rotation, as a fraction of the image's size: one number for both
            axes, or (x, y).

    Raises:
        ShapeError: the rank is not 4.
        ArgumentError: ``fill_value`` does not fit the channels.

    Source: TensorFlow.js's image.rotateWithOffset.

    Examples:
        >>> x = tp.reshape(tp.arange(1.0, 10.0), (1, 3, 3, 1))
        >>> tp.image.rotate_with_offset(x, np.pi / 2, center=1 / 3)[0, ..., 0]  # about pixel 1, 1
        Tensor([[3., 6., 9.],
                [2., 5., 8.],
                [1., 4., 7.]], dtype=float32, device='cpu')
        >>> tp.image.rotate_with_offset(x, np.pi, 99.0, (0.0, 1 / 3))[0, ..., 0]
        Tensor([[ 7., 99., 99.],
                [ 4., 99., 99.],
                [ 1., 99., 99.]], dtype=float32, device='cpu')

    """
    return dispatch(
        ROTATE_WITH_OFFSET, image, radians=radians, fill_value=fill_value, center=center
    )


# Projection --------------------------------------------------------------------------------


def _read_filled(value: Any, known: InputTypes) -> Scalar:
    value = dt.as_number(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ArgumentError(f"must be a number, got {quoted(value)}")
    real(value, "the number")  # refuses what does not fit into float64
    image: TensorType = known["image"]
    dt.check_number(value, image.dtype)
    return value


def _infer_transform(
    image: TensorType, transforms: TensorType, *, output_shape: Pair
) -> TensorType:
    _check_rank(image)
    batch, _, _, channels = image.shape
    if transforms.rank != 2 or transforms.shape[1] != 8 or transforms.shape[0] not in (1, batch):
        other = f" or [{batch}, 8]" if batch != 1 else ""
        raise ShapeError(f"transforms must have shape [1, 8]{other}")
    out = TensorType(image.dtype, (batch, *output_shape, channels))
    if out.size and not image.size:
        raise ShapeError(f"image must not be empty, got {image}")
    return out


def _read_size_of_image(known: InputTypes) -> Pair:
    shape: Shape = known["image"].shape
    return (shape[1], shape[2]) if len(shape) == 4 else (0, 0)  # infer rejects other ranks


TRANSFORM = KernelSpec(
    "Transform",
    ("image", "transforms"),
    _infer_transform,
    attributes={
        "interpolation": attributes.choice("nearest", "bilinear", default="nearest"),
        "fill_mode": attributes.choice(
            "constant", "reflect", "wrap", "nearest", default="constant"
        ),
        "fill_value": Attribute(_read_filled, 0, "int or float"),
        "output_shape": attributes.optional(size_attribute(), _read_size_of_image),
    },
    accepts={"image": dt.REAL, "transforms": dt.FLOATING},
    promote=("transforms",),
    inexact=True,
    typed_by="image",
    linear=("image",),
    linear_with={"fill_value": 0},
)


def transform(
    image: ArrayLike,
    transforms: ArrayLike,
    interpolation: Literal["nearest", "bilinear"] = "nearest",
    fill_mode: Literal["constant", "reflect", "wrap", "nearest"] = "constant",
    fill_value: float = 0,
    output_shape: Sequence[SupportsIndex] | None = None,
) -> Tensor:
    """Return images after projective transforms.

    The pixel at (x, y) of the result is read at
    ``((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k)`` of the image, with
    ``k = c0 x + c1 y + 1``.

    Args:
        image: [batch, height, width, channels], of any real dtype.
        transforms: [batch, 8], or [1, 8] for all images: a0, a1, a2, b0, b1, b2, c0, c1.
        interpolation: "nearest" (halves upwards) or "bilinear". Integers are truncated.
        fill_mode: values beyond the edges: "constant": ``fill_value``; "reflect"
            (dcba|abcd|dcba); "wrap" (abcd|abcd|abcd); "nearest" (aaaa|abcd|dddd).
        fill_value: for "constant", and for places at infinity.
        output_shape: (height, width) of the result; by default the image's.

    Returns:
        ``[batch, *output_shape, channels]`` in the image's dtype. It is differentiable in the
        image, and in the transforms if the interpolation is bilinear.

    Raises:
        ShapeError: a wrong rank or shape.
        ArgumentError: an unknown interpolation or fill mode.

    Source: TensorFlow's ImageProjectiveTransformV3.

    Examples:
        >>> x = tp.reshape(tp.asarray([1.0, 2.0, 3.0]), (1, 1, 3, 1))
        >>> shift = [[1.0, 0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0]]  # reads at x - 1
        >>> tp.image.transform(x, shift)[0, 0, :, 0]
        Tensor([0., 1., 2.], dtype=float32, device='cpu')
        >>> tp.image.transform(x, shift, fill_mode="nearest")[0, 0, :, 0]
        Tensor([1., 1., 2.], dtype=float32, device='cpu')
        >>> half = [[0.5, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]]  # twice as wide
        >>> tp.image.transform(x, half, "bilinear", output_shape=(1, 5))[0, 0, :, 0]
        Tensor([1. , 1.5, 2. , 2.5, 3. ], dtype=float32, device='cpu')

    """
    return dispatch(
        TRANSFORM,
        image,
        transforms,
        interpolation=interpolation,
        fill_mode=fill_mode,
        fill_value=fill_value,
        output_shape=output_shape,
    )
