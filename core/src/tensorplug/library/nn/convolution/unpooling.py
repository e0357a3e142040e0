"""The way back from pooling: elements return to their places. It lives in ``tensorplug.nn``."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final, SupportsIndex

import tensorplug as tp
from tensorplug.errors import DTypeError, ShapeError
from tensorplug.plugin import arguments, as_tensor, shapes
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["max_unpool"]

_MOST: Final = 2**31 - 2  # the longest row of which int32 numbers all places


def max_unpool(
    x: ArrayLike,
    indexes: ArrayLike,
    output_shape: Sequence[SupportsIndex],
    *,
    include_batch_in_index: bool = False,
) -> Tensor:
    """Return zeros with the elements of ``x`` in the places from which ``max_pool`` took them.

    Args:
        x: [batch, height, width, channels], such as the result of ``max_pool_with_argmax``.
        indexes: integers of the shape of x: the second result of ``max_pool_with_argmax``. A
            negative one drops the element.
        output_shape: [batch, height, width, channels] before the pooling.
        include_batch_in_index: as given to ``max_pool_with_argmax``.

    Where windows overlap, an index may occur more than once: the last of its elements stays.
    x is differentiable.

    Raises:
        ShapeError: the shapes do not fit.
        DTypeError: x does not hold numbers, or the indexes are not integers.
        ArgumentError: ``include_batch_in_index`` is not a flag.
        OutOfRangeError: an index lies beyond its image, on devices that can raise.

    Source: "Adaptive deconvolutional networks for mid and high level feature learning" (Zeiler
    et al., 2011), section 2.

    Examples:
        >>> x = tp.reshape(tp.asarray([[1.0, 2.0], [4.0, 3.0]]), (1, 2, 2, 1))
        >>> y, at = tp.nn.max_pool_with_argmax(x, 2, 2)
        >>> tp.nn.max_unpool(y, at, (1, 2, 2, 1))[0, ..., 0]
        Tensor([[0., 0.],
                [4., 0.]], dtype=float32, device='cpu')

    """
    caller = "max_unpool"
    values = as_tensor(x, what=f"{caller}: x")
    positions = as_tensor(indexes, what=f"{caller}: indexes")
    shape = shapes.as_shape(output_shape, f"{caller}: output_shape")
    if values.dtype not in dt.NUMERIC:
        raise DTypeError(f"{caller}: x must hold numbers, got {values.type}")
    if positions.dtype not in dt.INTEGER:
        raise DTypeError(f"{caller}: indexes must be integers, got {positions.type}")
    if values.ndim != 4 or positions.shape != values.shape:
        raise ShapeError(
            f"{caller}: x must be [batch, height, width, channels] and indexes of its shape, got "
            f"{values.type} and {positions.type}"
        )
    if len(shape) != 4 or shape[0] != values.shape[0] or shape[3] != values.shape[3]:
        raise ShapeError(
            f"{caller}: output_shape must be [{values.shape[0]}, height, width, "
            f"{values.shape[3]}], got {list(shape)}"
        )
    arguments.flag(include_batch_in_index, f"{caller}: include_batch_in_index")
    # One row for each range of indexes; its first place is for what is dropped.
    rows = 1 if include_batch_in_index else shape[0]
    length = prod(shape) if include_batch_in_index else prod(shape[1:])
    count = values.size // max(rows, 1)
    wide = tp.astype(positions, dt.int64 if length > _MOST else dt.int32)
    at = tp.maximum(tp.reshape(wide, (rows, count)), -1) + 1
    row = tp.broadcast_to(tp.expand_dims(tp.arange(rows, dtype=at.dtype), axis=-1), at.shape)
    base = tp.zeros((rows, length + 1), dtype=values.dtype)
    filled = tp.tensor_scatter_update(
        base, tp.stack([row, at], axis=-1), tp.reshape(values, at.shape)
    )
    return tp.reshape(tp.slice(filled, (0, 1), (rows, length)), shape)
