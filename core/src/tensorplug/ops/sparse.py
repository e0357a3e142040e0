"""Sparse tensors as coordinates and values, and sums of selected rows.

Most shapes here depend on the data. The functions live in ``tensorplug.sparse``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import UNKNOWN, KernelSpec, TensorType
from tensorplug.dispatch.calls import dispatch, dispatch_multiple
from tensorplug.errors import ShapeError

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, TensorLike

__all__ = [
    "sparse_fill_empty_rows",
    "sparse_reshape",
    "sparse_segment_mean",
    "sparse_segment_sum",
]


class FilledRows(NamedTuple):
    """The result of ``sparse_fill_empty_rows``."""

    output_indices: Tensor
    output_values: Tensor
    empty_row_indicator: Tensor
    reverse_index_map: Tensor


class ReshapedIndices(NamedTuple):
    """The result of ``sparse_reshape``."""

    output_indices: Tensor
    output_shape: Tensor


def _infer_sparse_fill_empty_rows(
    indices: TensorType, values: TensorType, dense_shape: TensorType, default_value: TensorType
) -> tuple[TensorType, ...]:
    _check_coordinates("indices", indices)
    count, rank = indices.shape
    if values.shape != (count,):
        raise ShapeError(f"values must have shape [{count}], one per row of indices")
    if dense_shape.shape != (rank,) or not rank:
        raise ShapeError(
            f"dense_shape must have shape [{rank}], one size per column of indices, and not be "
            "empty"
        )
    if default_value.rank:
        raise ShapeError("default_value must have rank 0")
    return (
        TensorType(indices.dtype, (UNKNOWN, rank)),
        TensorType(values.dtype, (UNKNOWN,)),
        TensorType(dt.bool_, (UNKNOWN,)),
        TensorType(indices.dtype, (count,)),
    )


def _check_coordinates(name: str, indices: TensorType) -> None:
    if indices.rank != 2:
        raise ShapeError(f"{name} must have rank 2: one row of coordinates per element")


SPARSE_FILL_EMPTY_ROWS = KernelSpec(
    "SparseFillEmptyRows",
    ("indices", "values", "dense_shape", "default_value"),
    _infer_sparse_fill_empty_rows,
    outputs=("output_indices", "output_values", "empty_row_indicator", "reverse_index_map"),
    accepts={"indices": dt.INTEGER, "dense_shape": dt.INTEGER},
    promote=("values", "default_value"),
)


def _infer_sparse_reshape(
    input_indices: TensorType, input_shape: TensorType, new_shape: TensorType
) -> tuple[TensorType, TensorType]:
    _check_coordinates("input_indices", input_indices)
    count, rank = input_indices.shape
    if input_shape.shape != (rank,):
        raise ShapeError(f"input_shape must have shape [{rank}], one size per coordinate")
    if new_shape.rank != 1:
        raise ShapeError("new_shape must have rank 1")
    return TensorType(input_indices.dtype, (count, new_shape.shape[0])), new_shape


SPARSE_RESHAPE = KernelSpec(
    "SparseReshape",
    ("input_indices", "input_shape", "new_shape"),
    _infer_sparse_reshape,
    outputs=("output_indices", "output_shape"),
    accepts=dt.INTEGER,
)


def _infer_segments(data: TensorType, indices: TensorType, segment_ids: TensorType) -> TensorType:
    if not data.rank:
        raise ShapeError("data must have at least rank 1")
    if indices.rank != 1 or segment_ids.shape != indices.shape:
        raise ShapeError("indices and segment_ids must have rank 1 and the same length")
    return TensorType(data.dtype, (UNKNOWN, *data.shape[1:]))


_PICKED = ("data", "indices", "segment_ids")
_ACCEPTS = {"data": dt.NUMERIC, "indices": dt.INTEGER, "segment_ids": dt.INTEGER}

SPARSE_SEGMENT_SUM = KernelSpec(
    "SparseSegmentSum", _PICKED, _infer_segments, accepts=_ACCEPTS, linear=("data",)
)
SPARSE_SEGMENT_MEAN = KernelSpec(
    "SparseSegmentMean", _PICKED, _infer_segments, accepts=_ACCEPTS, linear=("data",)
)


def sparse_fill_empty_rows(
    indices: ArrayLike, values: TensorLike, dense_shape: ArrayLike, default_value: TensorLike
) -> FilledRows:
    """Return a sparse tensor with ``default_value`` as the first element of each empty row.

    Args:
        indices: integers ``[n, rank]``, the coordinates of each element, in any order.
        values: ``[n]``, of any dtype, strings too.
        dense_shape: integers ``[rank]``, the shape of the tensor; its first size is the number of
            rows.
        default_value: of rank 0. It and ``values`` are promoted to a common dtype.

    Returns:
        ``output_indices`` ``[m, rank]`` and ``output_values`` ``[m]``, ordered by row and
        otherwise as before; ``empty_row_indicator`` (bool), whether each row was empty;
        ``reverse_index_map`` ``[n]``, the new place of each element. Coordinates have the dtype
        of ``indices``. It is differentiable in ``values`` and
        ``default_value``.

    Raises:
        ShapeError: the shapes do not fit each other.
        OutOfRangeError: an element's row is outside ``dense_shape``.

    (TensorFlow's SparseFillEmptyRows.)

    Examples:
        >>> rows = tp.sparse.sparse_fill_empty_rows([[0, 1], [2, 0]], [5, 7], [3, 2], -1)
        >>> rows.output_indices
        Tensor([[0, 1],
                [1, 0],
                [2, 0]], dtype=int32, device='cpu')
        >>> rows.output_values
        Tensor([ 5, -1,  7], dtype=int32, device='cpu')
        >>> rows.empty_row_indicator
        Tensor([False,  True, False], dtype=bool, device='cpu')
        >>> rows.reverse_index_map
        Tensor([0, 2], dtype=int32, device='cpu')

    """
    filled = dispatch_multiple(SPARSE_FILL_EMPTY_ROWS, indices, values, dense_shape, default_value)
    return FilledRows(*filled)


def sparse_reshape(
    input_indices: ArrayLike, input_shape: ArrayLike, new_shape: ArrayLike
) -> ReshapedIndices:
    """Return the coordinates of a sparse tensor's elements in another shape.

    Args:
        input_indices: integers ``[n, rank]``, the coordinates of each element.
        input_shape: integers ``[rank]``, the shape of the tensor.
        new_shape: integers ``[new rank]``, a shape with as many elements. One size may be -1,
            which stands for the size that fits.

    Returns:
        ``output_indices`` ``[n, new rank]``, of the dtype of ``input_indices``, and
        ``output_shape``, which is ``new_shape`` with its -1 replaced.

    Raises:
        ShapeError: the shapes have different numbers of elements, or negative sizes.
        OutOfRangeError: a coordinate is outside ``input_shape``.

    (TensorFlow's SparseReshape.)

    Examples:
        >>> moved = tp.sparse.sparse_reshape([[0, 1], [1, 2]], [2, 3], [3, -1])
        >>> moved.output_indices
        Tensor([[0, 1],
                [2, 1]], dtype=int32, device='cpu')
        >>> moved.output_shape
        Tensor([3, 2], dtype=int32, device='cpu')

    """
    return ReshapedIndices(
        *dispatch_multiple(SPARSE_RESHAPE, input_indices, input_shape, new_shape)
    )


def sparse_segment_sum(data: ArrayLike, indices: ArrayLike, segment_ids: ArrayLike) -> Tensor:
    """Return ``out[s] = sum of data[indices[i]] over all i with segment_ids[i] == s``.

    Args:
        data: numbers ``[rows, *rest]``.
        indices: integers ``[n]``, the rows to add.
        segment_ids: integers ``[n]``, the sum to which each row is added; ascending, with
            repetitions and gaps.

    Returns:
        ``[segments, *rest]``, of the dtype of ``data``. The number of segments is the last id
        plus 1; empty sums are 0. It is differentiable in ``data``.

    Raises:
        ShapeError: the shapes do not fit.
        OutOfRangeError: an index is not in ``[0, rows)``.
        ArgumentError: the ids are negative or descend.

    (TensorFlow's SparseSegmentSum.)

    Examples:
        >>> data = [[1, 2], [3, 4], [5, 6]]
        >>> tp.sparse.sparse_segment_sum(data, [0, 2, 1], [0, 0, 2])
        Tensor([[6, 8],
                [0, 0],
                [3, 4]], dtype=int32, device='cpu')

    """
    return dispatch(SPARSE_SEGMENT_SUM, data, indices, segment_ids)


def sparse_segment_mean(data: ArrayLike, indices: ArrayLike, segment_ids: ArrayLike) -> Tensor:
    """Return ``sparse_segment_sum`` divided by the number of summands.

    Args:
        data: as for ``sparse_segment_sum``.
        indices: likewise.
        segment_ids: likewise.

    Returns:
        ``[segments, *rest]``, of the dtype of ``data``; 0 for empty segments. Means of integers
        are truncated.

    Raises:
        ShapeError, OutOfRangeError, ArgumentError: as ``sparse_segment_sum``.

    (TensorFlow's SparseSegmentMean.)

    Examples:
        >>> data = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
        >>> tp.sparse.sparse_segment_mean(data, [0, 2, 1], [0, 0, 2])
        Tensor([[3., 4.],
                [0., 0.],
                [3., 4.]], dtype=float32, device='cpu')

    """
    return dispatch(SPARSE_SEGMENT_MEAN, data, indices, segment_ids)
