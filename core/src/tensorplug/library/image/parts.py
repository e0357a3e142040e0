"""Parts of images, in their own size. ``cropping`` has boxes that are resized."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.plugin import arguments, as_key, kinds, shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike, KeyLike

__all__ = ["center_crop", "random_crop"]


def _read_size(size: Any, images: Tensor, caller: str) -> tuple[int, int]:
    sizes = shapes.as_shape(size, f"{caller}: size")
    if len(sizes) != 2:
        raise ArgumentError(
            f"{caller}: size must be a pair of sizes, (height, width), "
            f"got {arguments.quoted(size)}"
        )
    height, width = images.shape[-3:-1]
    if sizes[0] > height or sizes[1] > width:
        raise ShapeError(
            f"{caller}: size must be at most {(height, width)}, that of {images.type}, got {sizes}"
        )
    return sizes[0], sizes[1]


def center_crop(images: ArrayLike, size: Sequence[SupportsIndex]) -> Tensor:
    """Return the middle of images: ``size`` (height, width) of their pixels.

    If the rows or columns that are left out are odd in number, one more of them is at the end.

    Args:
        images: [batch, height, width, channels], or one image [height, width, channels], of any
            dtype.
        size: the (height, width) of the result, at most those of the images.

    Raises:
        ShapeError: the rank is neither 3 nor 4, or the images are smaller than ``size``.
        ArgumentError: ``size`` is not a pair of integers.

    Source: torchvision's center_crop, without its padding of smaller images.

    Examples:
        >>> x = tp.reshape(tp.arange(20), (4, 5, 1))
        >>> tp.image.center_crop(x, (2, 3))[..., 0]
        Tensor([[ 6,  7,  8],
                [11, 12, 13]], dtype=int32, device='cpu')

    """
    tensor = kinds.images(images, "center_crop: images")
    height, width = _read_size(size, tensor, "center_crop")
    *batch, rows, columns, channels = tensor.shape
    begin = [*(0 for _ in batch), (rows - height) // 2, (columns - width) // 2, 0]
    return tp.slice(tensor, begin, [*batch, height, width, channels])


def random_crop(key: KeyLike, images: ArrayLike, size: Sequence[SupportsIndex]) -> Tensor:
    """Return a part of ``size`` (height, width) of each image, at a place of its own.

    All places in an image are equally likely. A key gives the same places on every backend.

    Args:
        key: a key.
        images: [batch, height, width, channels], or one image [height, width, channels], of any
            dtype.
        size: the (height, width) of the result, at most those of the images.

    Raises:
        ShapeError: the rank is neither 3 nor 4, or the images are smaller than ``size``.
        ArgumentError: ``key`` is not a key, or ``size`` is not a pair of integers.

    Source: TensorFlow's image.stateless_random_crop, which takes the same part of all images.

    Examples:
        >>> x = tp.zeros((16, 32, 32, 3))
        >>> padded = tp.pad(x, [(0, 0), (4, 4), (4, 4), (0, 0)])
        >>> tp.image.random_crop(tp.random.key(0), padded, (32, 32)).shape
        (16, 32, 32, 3)

    """
    checked = as_key(key, "random_crop")
    tensor = kinds.images(images, "random_crop: images")
    height, width = _read_size(size, tensor, "random_crop")
    single = tensor.ndim == 3
    batch = tp.expand_dims(tensor, axis=0) if single else tensor
    if not height or not width:  # nothing can be gathered where there may be nothing
        cropped = tp.slice(batch, [0] * 4, [batch.shape[0], height, width, batch.shape[3]])
    else:
        for_rows, for_columns = tp.random.split(checked)
        cropped = _take_range(for_rows, batch, 1, height)
        cropped = _take_range(for_columns, cropped, 2, width)
    return tp.squeeze(cropped, 0) if single else cropped


def _take_range(key: Tensor, images: Tensor, axis: int, length: int) -> Tensor:
    """Return ``length`` slices along an axis of each image, from a random one on."""
    count, most = images.shape[0], images.shape[axis] - length
    first = tp.random.integers(key, low=0, high=most + 1, shape=(count, 1))
    return tp.gather(images, first + tp.arange(length), axis=axis, batch_dims=1)
