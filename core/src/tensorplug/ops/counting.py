"""Sums by segment, and counts of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, chained, dispatch
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.ops.default_integers import gives_indices

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["bincount", "dense_bincount", "unsorted_segment_sum"]


def _infer_unsorted_segment_sum(
    x: TensorType, segment_ids: TensorType, *, num_segments: int
) -> TensorType:
    if x.shape[: segment_ids.rank] != segment_ids.shape:
        raise ShapeError(
            f"the shape of x must begin with that of segment_ids, {list(segment_ids.shape)}"
        )
    return TensorType(x.dtype, (num_segments, *x.shape[segment_ids.rank :]))


UNSORTED_SEGMENT_SUM = KernelSpec(
    "UnsortedSegmentSum",
    ("x", "segment_ids"),
    _infer_unsorted_segment_sum,
    attributes={"num_segments": attributes.integer(at_least=0)},
    accepts={"x": dt.NUMERIC, "segment_ids": dt.INTEGER},
    linear=("x",),
)


def _infer_dtype(x: TensorType, weights: TensorType | None) -> dt.DType:
    """Return the dtype of the counts, which is that of the weights."""
    if weights is None:
        return dt.kernel_int
    if weights.shape != x.shape and weights.size:
        raise ShapeError(f"weights must have the shape of x, {list(x.shape)}, or no elements")
    return weights.dtype


def _infer_bincount(x: TensorType, weights: TensorType | None, *, size: int) -> TensorType:
    return TensorType(_infer_dtype(x, weights), (size,))


BINCOUNT = KernelSpec(
    "Bincount",
    ("x", "weights?"),
    _infer_bincount,
    attributes={"size": attributes.integer(at_least=0)},
    accepts={"x": dt.INTEGER, "weights": dt.NUMERIC},
)


def _infer_dense_bincount(x: TensorType, weights: TensorType | None, *, size: int) -> TensorType:
    if x.rank not in (1, 2):
        raise ShapeError(f"x must have rank 1 or 2, got rank {x.rank}")
    return TensorType(_infer_dtype(x, weights), (*x.shape[:-1], size))


DENSE_BINCOUNT = KernelSpec(
    "DenseBincount",
    ("x", "weights?"),
    _infer_dense_bincount,
    attributes={
        "size": attributes.integer(at_least=0),
        "binary_output": attributes.flag(default=False),
    },
    accepts={"x": dt.INTEGER, "weights": dt.NUMERIC},
)


@chained
def unsorted_segment_sum(x: ArrayLike, segment_ids: ArrayLike, num_segments: int) -> Tensor:
    """Return ``out[s] = sum of x[i] over all i with segment_ids[i] == s``.

    Args:
        x: numbers, ``[*ids, *rest]``.
        segment_ids: integers, with the leading sizes of ``x``, in any order. Elements with ids
            outside ``[0, num_segments)`` are ignored.
        num_segments: number of sums. Sums without summands are 0.

    Returns:
        ``[num_segments, *rest]``, of the dtype of ``x``.

    Raises:
        ShapeError: the shape of ``x`` does not begin with that of ``segment_ids``.
        DTypeError: ``x`` holds booleans or strings, or the ids are not integers.

    Source: TensorFlow's UnsortedSegmentSum.

    Examples:
        >>> tp.unsorted_segment_sum([1.0, 2.0, 3.0, 4.0], [0, 2, 0, -1], 3)
        Tensor([4., 0., 2.], dtype=float32, device='cpu')
        >>> tp.unsorted_segment_sum([[1, 2], [3, 4], [5, 6]], [1, 0, 1], 2)
        Tensor([[3, 4],
                [6, 8]], dtype=int32, device='cpu')

    """
    return dispatch(UNSORTED_SEGMENT_SUM, x, segment_ids, num_segments=num_segments)


@gives_indices(unless="weights")
def bincount(
    x: ArrayLike, weights: ArrayLike | None = None, size: int | None = None, *, minlength: int = 0
) -> Tensor:
    """Return the number of occurrences in ``x`` of each integer from 0 to ``size - 1``.

    Args:
        x: non-negative integers of any shape. Those from ``size`` on are not counted.
        weights: of the shape of ``x``; without them, or without elements, each weight is 1.
        size: number of counts; by default one more than the maximum of ``x``, which is read.
        minlength: minimum number of counts if there is no size, as in NumPy.

    Returns:
        ``[size]``, int32 or the dtype of the weights.

    Raises:
        ArgumentError: both ``minlength`` and ``size``, or a negative one; or an integer is
            negative (some devices ignore it instead).
        ShapeError: the weights have another shape.
        DTypeError: ``x`` does not hold integers, or the weights are not numbers.

    Source: NumPy's bincount; TensorFlow's Bincount.

    Examples:
        >>> tp.bincount([0, 1, 1, 3])
        Tensor([1, 2, 0, 1], dtype=int32, device='cpu')
        >>> tp.bincount([0, 1, 1, 3], [0.5, 1.0, 2.0, 4.0])
        Tensor([0.5, 3. , 0. , 4. ], dtype=float32, device='cpu')
        >>> tp.bincount([0, 1, 1, 3], size=2)
        Tensor([1, 2], dtype=int32, device='cpu')
        >>> tp.bincount([0, 1], minlength=4)
        Tensor([1, 1, 0, 0], dtype=int32, device='cpu')

    """
    least = shapes.index(minlength, "bincount: minlength")
    if least < 0:
        raise ArgumentError(f"bincount: minlength must not be negative, got {least}")
    if size is not None and least:
        raise ArgumentError(
            f"bincount: size and minlength exclude each other, got {quoted(size)} and {least}"
        )
    x, size = _choose_size(x, size, "bincount", least)
    return dispatch(BINCOUNT, x, weights, size=size)


@gives_indices(unless="weights")
def dense_bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    size: int | None = None,
    *,
    binary_output: bool = False,
) -> Tensor:
    """Return how often each integer from 0 to ``size - 1`` occurs in ``x``, row by row.

    Args:
        x: integers of rank 1, or of rank 2 to count each row; see ``bincount``.
        weights: likewise.
        size: likewise.
        binary_output: whether to return 1 for integers that occur and 0 for others.

    Returns:
        ``[size]`` or ``[rows, size]``, int32 or the dtype of the weights.

    Raises:
        ArgumentError, ShapeError, DTypeError: as for ``bincount``; or ``x`` has another rank.

    Source: TensorFlow's DenseBincount.

    Examples:
        >>> tp.dense_bincount([[0, 1, 1], [2, 2, 2]])
        Tensor([[1, 2, 0],
                [0, 0, 3]], dtype=int32, device='cpu')
        >>> tp.dense_bincount([[0, 1, 1], [2, 2, 2]], binary_output=True)
        Tensor([[1, 1, 0],
                [0, 0, 1]], dtype=int32, device='cpu')

    """
    x, size = _choose_size(x, size, "dense_bincount")
    return dispatch(DENSE_BINCOUNT, x, weights, size=size, binary_output=binary_output)


def _choose_size(x: Any, size: int | None, caller: str, least: int = 0) -> tuple[Any, int]:
    """Return ``x`` and the number of counts: ``size`` or the number needed, at least ``least``."""
    if size is not None:
        return x, size
    tensor = as_tensor(x, what=f"{caller}: x")
    if not tensor.size or tensor.dtype not in dt.INTEGER:  # the kernel rejects other dtypes
        return tensor, least
    return tensor, max(int(tensor.numpy().max()) + 1, least)
