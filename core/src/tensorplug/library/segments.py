"""Reductions by segment: elements with the same id are reduced together, in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import tensorplug as tp
from tensorplug.algorithms import highest, in_range, lowest
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.plugin import as_tensor, kinds, shapes
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import Scalar, Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum"]


def segment_sum(x: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None) -> Tensor:
    """Return ``out[s] = sum of x[i] over all i with segment_ids[i] == s``.

    Args:
        x: numbers, ``[*ids, *rest]``.
        segment_ids: integers, with the leading sizes of ``x``, in any order. Elements with ids
            outside ``[0, num_segments)`` are ignored.
        num_segments: number of segments; by default one more than the largest id, which is then
            read from the device.

    Returns:
        ``[num_segments, *rest]``, of the dtype of ``x``; 0 for empty segments.

    Raises:
        ShapeError: the shape of ``x`` does not begin with that of ``segment_ids``.
        DTypeError: ``x`` does not hold numbers, or the ids are not integers.
        ArgumentError: ``num_segments`` is negative.

    (Like ``unsorted_segment_sum``, but the number of segments is optional, as in JAX.)

    Examples:
        >>> tp.segment_sum([1, 2, 4], [0, 2, 0])
        Tensor([5, 0, 2], dtype=int32, device='cpu')
        >>> tp.segment_sum([[1, 10], [2, 20], [4, 40]], [1, 0, 1])  # rows are added
        Tensor([[ 2, 20],
                [ 5, 50]], dtype=int32, device='cpu')
        >>> tp.segment_sum([1, 2, 4], [0, -1, 9], num_segments=2)  # ids outside are ignored
        Tensor([1, 0], dtype=int32, device='cpu')

    """
    values, ids, count = _read(x, segment_ids, num_segments, "segment_sum")
    return tp.unsorted_segment_sum(values, ids, count)


def segment_mean(x: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None) -> Tensor:
    """Return the mean of the elements of each segment.

    Args:
        x: numbers; integers become float32.
        segment_ids: as for ``segment_sum``.
        num_segments: likewise.

    Returns:
        ``[num_segments, *rest]``; 0 for empty segments, as in ``sparse_segment_mean``.

    Raises:
        ShapeError, DTypeError, ArgumentError: as for ``segment_sum``.

    (TensorFlow's unsorted_segment_mean.)

    Examples:
        >>> tp.segment_mean([1.0, 2.0, 4.0], [0, 2, 0], 3)
        Tensor([2.5, 0. , 2. ], dtype=float32, device='cpu')

    """
    values, ids, count = _read(x, segment_ids, num_segments, "segment_mean")
    values = kinds.inexact(values, "segment_mean: x")
    dtype = values.dtype
    work = kinds.widen_half(values)
    sums = tp.unsorted_segment_sum(work, ids, count)
    once = tp.ones(ids.shape, dtype=dt.real_part(work.dtype))
    numbers = tp.maximum(tp.unsorted_segment_sum(once, ids, count), 1)
    return tp.astype(tp.divide(sums, tp.reshape(numbers, (count, *(1,) * (sums.ndim - 1)))), dtype)


def segment_prod(x: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None) -> Tensor:
    """Return the product of the elements of each segment.

    Args:
        x: numbers.
        segment_ids: as for ``segment_sum``.
        num_segments: likewise.

    Returns:
        ``[num_segments, *rest]``, of the dtype of ``x``; 1 for empty segments. The gradient is
        right at zeros too.

    Raises:
        ShapeError, DTypeError, ArgumentError: as for ``segment_sum``.

    (TensorFlow's unsorted_segment_prod.)

    Examples:
        >>> tp.segment_prod([1, 2, 4], [0, 2, 0], 3)
        Tensor([4, 1, 2], dtype=int32, device='cpu')

    """
    segments = _read(x, segment_ids, num_segments, "segment_prod")
    return _fold(*segments, "multiply", 1)


def segment_max(x: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None) -> Tensor:
    """Return the largest element of each segment; NaN if the segment contains one.

    Args:
        x: real numbers.
        segment_ids: as for ``segment_sum``.
        num_segments: likewise.

    Returns:
        ``[num_segments, *rest]``, of the dtype of ``x``. For empty segments, -inf or the smallest
        integer of the dtype. The gradient is shared equally among the largest elements, as
        for ``max``.

    Raises:
        ShapeError, DTypeError, ArgumentError: as for ``segment_sum``; or ``x`` is complex.

    (JAX's segment_max. TensorFlow's unsorted_segment_max gives the smallest finite number for
    empty segments.)

    Examples:
        >>> tp.segment_max([1, 2, 4], [1, 0, 1], 2)
        Tensor([2, 4], dtype=int32, device='cpu')
        >>> tp.segment_max([1.0, tp.nan], [0, 1], 3)
        Tensor([  1.,  nan, -inf], dtype=float32, device='cpu')

    """
    values, ids, count = _read(x, segment_ids, num_segments, "segment_max", real=True)
    return _fold(values, ids, count, "max", lowest(values.dtype))


def segment_min(x: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None) -> Tensor:
    """Return the smallest element of each segment; NaN if the segment contains one.

    Args:
        x: real numbers.
        segment_ids: as for ``segment_sum``.
        num_segments: likewise.

    Returns:
        ``[num_segments, *rest]``, of the dtype of ``x``. For empty segments, inf or the largest
        integer of the dtype. The gradient is shared equally among the smallest elements.

    Raises:
        ShapeError, DTypeError, ArgumentError: as for ``segment_max``.

    (JAX's segment_min.)

    Examples:
        >>> tp.segment_min([1, 2, 4], [1, 0, 1], 2)
        Tensor([2, 1], dtype=int32, device='cpu')
        >>> tp.segment_min([1.0, 2.0], [0, 0], 2)
        Tensor([ 1., inf], dtype=float32, device='cpu')

    """
    values, ids, count = _read(x, segment_ids, num_segments, "segment_min", real=True)
    return _fold(values, ids, count, "min", highest(values.dtype))


def _read(
    x: Any, segment_ids: Any, num_segments: int | None, caller: str, *, real: bool = False
) -> tuple[Tensor, Tensor, int]:
    """Return the arguments as tensors, and the number of segments.

    Raises:
        ShapeError, DTypeError, ArgumentError: they are not those of a segment reduction.

    """
    values = as_tensor(x, what=f"{caller}: x")
    ids = as_tensor(segment_ids, what=f"{caller}: segment_ids")
    if values.dtype not in (dt.REAL if real else dt.NUMERIC):
        kind = "real numbers" if real else "numbers"
        raise DTypeError(f"{caller}: x is {values.type}, but must hold {kind}")
    if ids.dtype not in dt.INTEGER:
        raise DTypeError(f"{caller}: segment_ids are {ids.type}, but must be integers")
    if values.shape[: ids.ndim] != ids.shape:
        raise ShapeError(
            f"{caller}: x is {values.type}, but its shape must begin with that of segment_ids, "
            f"{list(ids.shape)}"
        )
    if num_segments is None:
        return values, ids, max(int(ids.numpy().max()) + 1, 0) if ids.size else 0
    count = shapes.index(num_segments, f"{caller}: num_segments")
    if count < 0:
        raise ArgumentError(f"{caller}: num_segments must be at least 0, got {count}")
    return values, ids, count


def _fold(
    values: Tensor,
    ids: Tensor,
    count: int,
    reduction: Literal["multiply", "max", "min"],
    empty: Scalar,
) -> Tensor:
    """Return the elements combined by segment, ``empty`` for segments without any."""
    rest = values.shape[ids.ndim :]
    flat = tp.reshape(ids, (ids.size,))
    # Elements outside all segments go to one extra segment, which is cut off.
    rows = tp.where(in_range(flat, count), tp.astype(flat, dt.int32), count)
    result = tp.tensor_scatter_reduce(
        tp.full((count + 1, *rest), empty, dtype=values.dtype),
        tp.reshape(rows, (ids.size, 1)),
        tp.reshape(values, (ids.size, *rest)),
        reduction,
        include_self=False,
    )
    return result[:count]
