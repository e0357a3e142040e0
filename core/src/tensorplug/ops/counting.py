"""Sums by segment, and counts of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, chained, dispatch
from tensorplug.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

__all__ = ["bincount", "dense_bincount", "unsorted_segment_sum"]


def _segments(x: TensorType, segment_ids: TensorType, *, num_segments: int) -> TensorType:
    if x.shape[: segment_ids.rank] != segment_ids.shape:
        raise ShapeError(f"x must begin with the sizes of segment_ids, {list(segment_ids.shape)}")
    return TensorType(x.dtype, (num_segments, *x.shape[segment_ids.rank :]))


UNSORTED_SEGMENT_SUM = KernelSpec(
    "UnsortedSegmentSum",
    ("x", "segment_ids"),
    _segments,
    attributes={"num_segments": attributes.integer(at_least=0)},
    accepts={"x": dt.NUMERIC, "segment_ids": dt.INTEGER},
)


def _weighed(x: TensorType, weights: TensorType | None) -> dt.DType:
    """Return the dtype of the counts, which is that of the weights."""
    if weights is None:
        return dt.default_int
    if weights.shape != x.shape and weights.size:
        raise ShapeError(f"weights must have the shape of x, {list(x.shape)}, or no elements")
    return weights.dtype


def _bins(x: TensorType, weights: TensorType | None, *, size: int) -> TensorType:
    return TensorType(_weighed(x, weights), (size,))


BINCOUNT = KernelSpec(
    "Bincount",
    ("x", "weights?"),
    _bins,
    attributes={"size": attributes.integer(at_least=0)},
    accepts={"x": dt.INTEGER, "weights": dt.NUMERIC},
)


def _dense_bins(x: TensorType, weights: TensorType | None, *, size: int) -> TensorType:
    if x.rank not in (1, 2):
        raise ShapeError(f"x must have rank 1 or 2, got rank {x.rank}")
    return TensorType(_weighed(x, weights), (*x.shape[:-1], size))


DENSE_BINCOUNT = KernelSpec(
    "DenseBincount",
    ("x", "weights?"),
    _dense_bins,
    attributes={
        "size": attributes.integer(at_least=0),
        "binary_output": attributes.flag(default=False),
    },
    accepts={"x": dt.INTEGER, "weights": dt.NUMERIC},
)


@chained
def unsorted_segment_sum(x: Any, segment_ids: Any, num_segments: int) -> Tensor:
    """Return ``out[s] = sum of x[i] over all i with segment_ids[i] == s``.

    Args:
        x: numbers, ``[*ids, *rest]``.
        segment_ids: integers, of the leading sizes of ``x``, in any order. What has an id outside
            ``[0, num_segments)`` is left out.
        num_segments: how many sums there are; without summands they are 0.

    Returns:
        ``[num_segments, *rest]``, of the dtype of ``x``.

    Raises:
        ShapeError: ``x`` does not begin with the sizes of ``segment_ids``.

    (TensorFlow's UnsortedSegmentSum.)

    """
    return dispatch(UNSORTED_SEGMENT_SUM, x, segment_ids, num_segments=num_segments)


def bincount(
    x: Any, weights: Any = None, size: int | None = None, *, minlength: int = 0
) -> Tensor:
    """Return how often each integer from 0 to ``size - 1`` occurs in ``x``.

    Args:
        x: integers of any shape, none of them negative. Those from ``size`` on are not counted.
        weights: of the shape of ``x``: what each counts, 1 by default (also if it has no
            elements).
        size: how many counts there are; one more than the greatest of ``x`` by default, for
            which its data is read.
        minlength: how many there are at least where no size says it, as in NumPy.

    Returns:
        ``[size]``, int32; with weights of their dtype.

    Raises:
        ArgumentError: ``minlength`` beside a size; an integer is negative, where the device can
            tell (others leave it out).
        ShapeError: the weights have another shape.

    (TensorFlow's Bincount.)

    """
    least = shapes.index(minlength, "bincount: minlength")
    if size is not None and least:
        raise ArgumentError(f"bincount: either size or minlength, got {size!r} and {least}")
    x, size = _sized(x, size, "bincount", least)
    return dispatch(BINCOUNT, x, weights, size=size)


def dense_bincount(
    x: Any, weights: Any = None, size: int | None = None, *, binary_output: bool = False
) -> Tensor:
    """Return how often each integer from 0 to ``size - 1`` occurs in ``x``, row by row.

    Args:
        x: integers, of rank 1 or, for a count of each row, 2; see ``bincount``.
        weights: likewise.
        size: likewise.
        binary_output: say only whether an integer occurs: 1 or 0.

    Returns:
        ``[size]`` or ``[rows, size]``, int32; with weights of their dtype.

    Raises:
        ArgumentError, ShapeError: as for ``bincount``; or ``x`` has another rank.

    (TensorFlow's DenseBincount.)

    """
    x, size = _sized(x, size, "dense_bincount")
    return dispatch(DENSE_BINCOUNT, x, weights, size=size, binary_output=binary_output)


def _sized(x: Any, size: int | None, caller: str, least: int = 0) -> tuple[Any, int]:
    """Return ``x``, and how many counts there are, at least ``least`` if nobody has said it."""
    if size is not None:
        return x, size
    tensor = as_tensor(x, what=f"{caller}: x")
    if not tensor.size or tensor.dtype not in dt.INTEGER:  # the kernel refuses what is none
        return tensor, least
    return tensor, max(int(tensor.numpy().max()) + 1, least)
