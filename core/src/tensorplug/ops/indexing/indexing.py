"""Reading and writing at indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, chained, dispatch, dispatch_binary
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops import movement

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType, Scalar
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor

__all__ = [
    "gather",
    "gather_nd",
    "one_hot",
    "scatter_nd",
    "sparse_to_dense",
    "take",
    "take_along_axis",
    "tensor_scatter_update",
]


def _gather(x: TensorType, indices: TensorType, *, axis: int, batch_dims: int) -> TensorType:
    if x.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise ShapeError(f"the first {batch_dims} sizes differ")
    if axis < batch_dims:
        raise ShapeError(f"axis {axis} lies before the {batch_dims} batch axes")
    if x.shape[axis] == 0 and indices.size:
        raise ShapeError(f"axis {axis} is empty: there is nothing to gather")
    shape = (*x.shape[:axis], *indices.shape[batch_dims:], *x.shape[axis + 1 :])
    return TensorType(x.dtype, shape)


def _batch_dims(value: Any, known: InputTypes) -> int:
    number = shapes.index(value)
    rank: int = known["indices"].rank
    if number < 0:
        number += rank
    if not 0 <= number <= rank:
        raise ShapeError(f"batch_dims {value} is out of range for indices of rank {rank}")
    return number


GATHER_V2 = KernelSpec(
    "GatherV2",
    ("x", "indices"),
    _gather,
    attributes={
        "axis": attributes.axis("x", 0),
        "batch_dims": Attribute(_batch_dims, 0, "int in [0, rank of indices]"),
    },
    accepts={"indices": dt.INTEGER},
)


def _depth(indices: Shape, shape: Shape) -> int:
    """Return how many axes of ``shape`` an index, a row of the indices, names."""
    if not indices:
        raise ShapeError("indices must have at least rank 1")
    depth = indices[-1]
    if depth > len(shape):
        raise ShapeError(f"indices of depth {depth} do not fit shape {list(shape)}")
    return depth


def _gather_nd(params: TensorType, indices: TensorType) -> TensorType:
    depth = _depth(indices.shape, params.shape)
    shape = (*indices.shape[:-1], *params.shape[depth:])
    if shapes.size(indices.shape[:-1]) and not shapes.size(params.shape[:depth]):
        raise ShapeError("params is empty: there is nothing to gather")
    return TensorType(params.dtype, shape)


GATHER_ND = KernelSpec(
    "GatherNd", ("params", "indices"), _gather_nd, accepts={"indices": dt.INTEGER}
)


def scatter_depth(indices: Shape, updates: Shape, shape: Shape) -> int:
    """Return how many axes of ``shape`` an index names, from the shapes of a scatter's inputs.

    Indices of rank 1 are one index (TensorFlow), or, where the updates say so, one index of
    depth 1 for each update (TensorFlow.js).

    Raises:
        ShapeError: the updates have neither the one shape nor the other.

    """
    if len(indices) == 1 and shape and updates == (*indices, *shape[1:]):
        return 1
    depth = _depth(indices, shape)
    wanted = (*indices[:-1], *shape[depth:])
    if updates != wanted:
        raise ShapeError(f"updates must have shape {list(wanted)}")
    return depth


def _scatter(indices: TensorType, updates: TensorType, *, shape: Shape) -> TensorType:
    scatter_depth(indices.shape, updates.shape, shape)
    if updates.size and not shapes.size(shape):
        raise ShapeError(f"shape {list(shape)} is empty: there is nowhere to scatter to")
    return TensorType(updates.dtype, shape)


SCATTER_ND = KernelSpec(
    "ScatterNd",
    ("indices", "updates"),
    _scatter,
    attributes={"shape": attributes.shape()},
    accepts={"indices": dt.INTEGER, "updates": dt.NUMERIC},
)


def _scatter_update(tensor: TensorType, indices: TensorType, updates: TensorType) -> TensorType:
    return TensorType(tensor.dtype, _scatter(indices, updates, shape=tensor.shape).shape)


TENSOR_SCATTER_UPDATE = KernelSpec(
    "TensorScatterUpdate",
    ("tensor", "indices", "updates"),
    _scatter_update,
    accepts={"indices": dt.INTEGER},
    promote=("tensor", "updates"),
)


def _sparse_to_dense(
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
            f"sparse_indices name {depth} axes, but output_shape {list(output_shape)} has "
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
    _sparse_to_dense,
    attributes={"output_shape": attributes.shape()},
    accepts={"sparse_indices": dt.INTEGER},
    promote=("sparse_values", "default_value"),
)


def _one_hot(
    indices: TensorType, *, depth: int, on_value: Scalar, off_value: Scalar, dtype: DType
) -> TensorType:
    dt.check_number(on_value, dtype)
    dt.check_number(off_value, dtype)
    return TensorType(dtype, (*indices.shape, depth))


ONE_HOT = KernelSpec(
    "OneHot",
    ("indices",),
    _one_hot,
    attributes={
        "depth": attributes.integer(at_least=0),
        "on_value": attributes.number(1),
        "off_value": attributes.number(0),
        "dtype": attributes.dtype("float32"),
    },
    accepts=dt.INTEGER,
)


@chained
def gather(x: Any, indices: Any, *, axis: int = 0, batch_dims: int = 0) -> Tensor:
    """Return the slices of ``x`` along ``axis`` that ``indices`` name.

    The result has the shape ``x.shape[:axis] + indices.shape[batch_dims:] + x.shape[axis+1:]``.
    An index outside ``[-n, n)`` for an axis of length n is an error on the CPU and gives an
    unspecified element on devices that cannot raise; negative ones count from the end.
    (TensorFlow's GatherV2.)
    """
    if axis.__class__ is int and axis == 0 and not batch_dims:
        return dispatch_binary(GATHER_V2, x, indices)  # the defaults; a shorter way
    return dispatch(GATHER_V2, x, indices, axis=axis, batch_dims=batch_dims)


@chained
def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Tensor:
    """Return the elements, or slices, of ``x`` along ``axis`` that ``indices`` name.

    Args:
        x: a tensor of any dtype.
        indices: integers, of any rank; their axes stand in the place of ``axis``. Negative ones
            count from the end.
        axis: may be left out where ``x`` has one.

    Raises:
        ShapeError: ``axis`` is out of range.
        ArgumentError: ``axis`` is missing; or an index is out of range, where the device can
            tell (see ``gather``).

    (The array API standard's take.)

    """
    if axis is None:
        x = as_tensor(x, what="take: x")
        if x.ndim != 1:
            raise ArgumentError(f"take: axis is missing, and x is {x.type}")
        axis = 0
    return dispatch(GATHER_V2, x, indices, axis=axis, batch_dims=0)


@chained
def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Tensor:
    """Return ``out[..., i, ...] = x[..., indices[..., i, ...], ...]``, with i on ``axis``.

    Args:
        x: a tensor of any dtype.
        indices: integers, of the rank of ``x``; the sizes of all other axes broadcast against
            those of ``x``. What ``argsort`` returns, for example. Negative ones count from the
            end.
        axis: along which they count.

    Raises:
        ShapeError: ``axis`` is out of range, the ranks differ, or the shapes do not broadcast.
        ArgumentError: an index is out of range, where the device can tell (see ``gather``).

    (The array API standard's take_along_axis.)

    """
    who = "take_along_axis"
    x, indices = as_tensor(x, what=f"{who}: x"), as_tensor(indices, what=f"{who}: indices")
    if indices.dtype not in dt.INTEGER:
        raise DTypeError(f"{who}: indices are {indices.type}, but must be integers")
    if indices.ndim != x.ndim:
        raise ShapeError(f"{who}: x is {x.type} and indices are {indices.type}: the ranks differ")
    at = shapes.normalize_axis(axis, x.ndim, f"{who} of {x.type}: axis")
    shape, index_shape = list(x.shape), list(indices.shape)
    shape[at] = index_shape[at] = 1
    common = shapes.broadcast(tuple(shape), tuple(index_shape))
    last = x.ndim - 1
    lined_up = []
    for item in (x, indices):
        wanted = (*common[:at], item.shape[at], *common[at + 1 :])
        wide = item if item.shape == wanted else movement.broadcast_to(item, wanted)
        lined_up.append(_swapped(wide, at, last))
    return _swapped(gather(*lined_up, axis=last, batch_dims=last), at, last)


def _swapped(x: Tensor, a: int, b: int) -> Tensor:
    if a == b:
        return x
    order = list(range(x.ndim))
    order[a], order[b] = b, a
    return movement.permute_dims(x, order)


def gather_nd(x: Any, indices: Any, /) -> Tensor:
    """Return the elements, or slices, of ``x`` that each row of ``indices`` names.

    The last axis of ``indices`` (length d) holds one index for each of the first d axes of
    ``x``; the result has the shape ``indices.shape[:-1] + x.shape[d:]``. Negative indices count
    from the end; for those out of range see ``gather``. (TensorFlow's GatherNd.)

    Raises:
        ShapeError: d is greater than the rank of ``x``, or ``indices`` has rank 0.

    """
    return dispatch(GATHER_ND, x, indices)


def scatter_nd(indices: Any, updates: Any, shape: Any) -> Tensor:
    """Return zeros of ``shape`` with ``updates`` added at ``indices``; duplicates add up.

    The last axis of ``indices`` (length d) names positions in the first d axes of ``shape``;
    ``updates`` has the shape ``indices.shape[:-1] + shape[d:]``. Indices of rank 1 may also name
    one position in the first axis for each update. (TensorFlow's ScatterNd.)
    """
    return dispatch(SCATTER_ND, indices, updates, shape=shape)


def tensor_scatter_update(tensor: Any, indices: Any, updates: Any) -> Tensor:
    """Return ``tensor`` with ``updates`` in the places that ``indices`` name.

    Indices and updates are as for ``scatter_nd``; where a place is named twice, the later update
    stands. ``tensor[...] = value`` says it more shortly. (TensorFlow's TensorScatterUpdate.)

    Raises:
        ShapeError: the indices do not fit the tensor, or the updates not the indices.
        ArgumentError: an index is out of range, where the device can tell (see ``gather``).

    """
    return dispatch(TENSOR_SCATTER_UPDATE, tensor, indices, updates)


def sparse_to_dense(
    sparse_indices: Any, sparse_values: Any, output_shape: Any, default_value: Any = 0
) -> Tensor:
    """Return a dense tensor of ``sparse_values`` at ``sparse_indices``, else ``default_value``.

    Args:
        sparse_indices: integers: [n, d], a row for each value; [n] where there is one axis; or of
            rank 0. Where a place is named twice, the later value stands.
        sparse_values: [n], or one value of rank 0 for all places; of any dtype.
        output_shape: d sizes.
        default_value: of rank 0.

    Raises:
        ShapeError: the shapes do not fit one another.
        ArgumentError: an index is out of range, where the device can tell (see ``gather``).

    (TensorFlow's SparseToDense.)

    """
    values = as_tensor(sparse_values, what="sparse_to_dense: sparse_values")
    default = None if default_value is None or _is_zero(default_value) else default_value
    return dispatch(SPARSE_TO_DENSE, sparse_indices, values, default, output_shape=output_shape)


def _is_zero(value: Any) -> bool:
    """Return whether it is the number that stands for an empty text in tensors of strings."""
    return type(value) is int and value == 0


def one_hot(
    indices: Any,
    depth: int,
    on_value: Scalar = 1,
    off_value: Scalar = 0,
    *,
    dtype: Any = dt.float32,
) -> Tensor:
    """Return ``on_value`` where the new last axis equals the index, else ``off_value``.

    An index outside ``[0, depth)`` gives a row of ``off_value``. (TensorFlow's OneHot.)
    """
    return dispatch(
        ONE_HOT,
        indices,
        depth=depth,
        on_value=on_value,
        off_value=off_value,
        dtype=dt.of(dtype, "one_hot"),
    )
