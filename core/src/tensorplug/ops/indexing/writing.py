"""Writing values at indices that a tensor holds: specs and public functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, dispatch
from tensorplug.errors import ShapeError
from tensorplug.ops.indexing.indexing import _is_zero, scatter_depth

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, ShapeLike, TensorLike


__all__ = ["scatter_nd", "sparse_to_dense", "tensor_scatter_update"]


def _infer_scatter(indices: TensorType, updates: TensorType, *, shape: Shape) -> TensorType:
    scatter_depth(indices.shape, updates.shape, shape)
    if updates.size and not shapes.size(shape):
        raise ShapeError(f"shape {list(shape)} is empty: there is nowhere to scatter to")
    return TensorType(updates.dtype, shape)


SCATTER_ND = KernelSpec(
    "ScatterNd",
    ("indices", "updates"),
    _infer_scatter,
    attributes={"shape": attributes.shape()},
    accepts={"indices": dt.INTEGER, "updates": dt.NUMERIC},
    linear=("updates",),
)


def _infer_scatter_update(
    tensor: TensorType, indices: TensorType, updates: TensorType
) -> TensorType:
    return TensorType(tensor.dtype, _infer_scatter(indices, updates, shape=tensor.shape).shape)


TENSOR_SCATTER_UPDATE = KernelSpec(
    "TensorScatterUpdate",
    ("tensor", "indices", "updates"),
    _infer_scatter_update,
    accepts={"indices": dt.INTEGER},
    promote=("tensor", "updates"),
    linear=(("tensor", "updates"),),
)


def _infer_sparse_to_dense(
    sparse_indices: TensorType,
    sparse_values: TensorType,
    default_value: TensorType | None,
    *,
    output_shape: Shape,
) -> TensorType:
    if sparse_indices.rank > 2:
        raise ShapeError(
            f"sparse_indices has rank {sparse_indices.rank}, but at most 2 is allowed"
        )
    depth = sparse_indices.shape[1] if sparse_indices.rank == 2 else 1
    if depth != len(output_shape):
        raise ShapeError(
            f"sparse_indices address {depth} axes, but output_shape {list(output_shape)} has "
            f"{len(output_shape)}"
        )
    count = sparse_indices.shape[0] if sparse_indices.rank else 1
    if sparse_values.shape not in ((), (count,)):
        raise ShapeError(f"sparse_values must be of rank 0 or of shape [{count}]")
    if default_value is not None and default_value.shape:
        raise ShapeError("default_value must be of rank 0")
    if count and not shapes.size(output_shape):
        raise ShapeError(f"output_shape {list(output_shape)} is empty: nothing fits into it")
    return TensorType(sparse_values.dtype, output_shape)


SPARSE_TO_DENSE = KernelSpec(
    "SparseToDense",
    ("sparse_indices", "sparse_values", "default_value?"),
    _infer_sparse_to_dense,
    attributes={"output_shape": attributes.shape()},
    accepts={"sparse_indices": dt.INTEGER},
    promote=("sparse_values", "default_value"),
    linear=(("sparse_values", "default_value"),),
)


def scatter_nd(indices: ArrayLike, updates: ArrayLike, shape: ShapeLike) -> Tensor:
    """Return zeros of ``shape`` with ``updates`` added at ``indices``; duplicates add up.

    The last axis of ``indices`` (length d) holds one index for each of the first d axes of
    ``shape``; ``updates`` has the shape ``indices.shape[:-1] + shape[d:]``. Indices of rank 1 may
    also hold one index of the first axis for each update.

    Raises:
        ShapeError: the indices do not fit the shape, or the updates do not fit the indices.
        DTypeError: the indices are not integers, or the updates not numbers.
        ArgumentError: an index is out of range and the device can detect it (see ``gather``).

    Source: TensorFlow's ScatterNd.

    Examples:
        >>> tp.scatter_nd([[0], [2], [0]], [1, 2, 10], (4,))
        Tensor([11,  0,  2,  0], dtype=int32, device='cpu')
        >>> tp.scatter_nd([[1]], [[5, 6]], (3, 2))  # a row
        Tensor([[0, 0],
                [5, 6],
                [0, 0]], dtype=int32, device='cpu')

    """
    return dispatch(SCATTER_ND, indices, updates, shape=shape)


def tensor_scatter_update(tensor: TensorLike, indices: ArrayLike, updates: TensorLike) -> Tensor:
    """Return a copy of ``tensor`` with ``updates`` at ``indices``.

    Indices and updates are as for ``scatter_nd``. If an index occurs twice, the later update
    wins. ``tensor[...] = value`` is shorter.

    Raises:
        ShapeError: the indices do not fit the tensor, or the updates do not fit the indices.
        ArgumentError: an index is out of range and the device can detect it (see ``gather``).

    Source: TensorFlow's TensorScatterUpdate.

    Examples:
        >>> tp.tensor_scatter_update([1, 2, 3, 4], [[0], [-1]], [10, 40])
        Tensor([10,  2,  3, 40], dtype=int32, device='cpu')
        >>> tp.tensor_scatter_update([[1, 2], [3, 4]], [[1, 0]], [9])
        Tensor([[1, 2],
                [9, 4]], dtype=int32, device='cpu')

    """
    return dispatch(TENSOR_SCATTER_UPDATE, tensor, indices, updates)


def sparse_to_dense(
    sparse_indices: ArrayLike,
    sparse_values: TensorLike,
    output_shape: ShapeLike,
    default_value: TensorLike | None = 0,
) -> Tensor:
    """Return a dense tensor of ``sparse_values`` at ``sparse_indices``, else ``default_value``.

    Args:
        sparse_indices: integers of shape [n, d], a row for each value; or, if d is 1, of shape
            [n] or []. If an index occurs twice, the later value wins.
        sparse_values: values of shape [n], or one value of rank 0 for all indices; of any dtype.
        output_shape: the d sizes of the result.
        default_value: a value of rank 0.

    Raises:
        ShapeError: the shapes do not fit one another.
        ArgumentError: an index is out of range and the device can detect it (see ``gather``).

    Source: TensorFlow's SparseToDense.

    Examples:
        >>> tp.sparse_to_dense([[0, 1], [1, 2]], [5, 6], (2, 3))
        Tensor([[0, 5, 0],
                [0, 0, 6]], dtype=int32, device='cpu')
        >>> tp.sparse_to_dense([1, 3], [1.0, 2.0], (5,), default_value=-1.0)
        Tensor([-1.,  1., -1.,  2., -1.], dtype=float32, device='cpu')

    """
    values = as_tensor(sparse_values, what="sparse_to_dense: sparse_values")
    default = None if default_value is None or _is_zero(default_value) else default_value
    return dispatch(SPARSE_TO_DENSE, sparse_indices, values, default, output_shape=output_shape)
