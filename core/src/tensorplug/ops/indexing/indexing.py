"""Reading and writing at indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, chained, dispatch, dispatch_binary
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops import movement
from tensorplug.ops.creation import full
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType, Scalar
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, DTypeLike, TensorLike

__all__ = ["gather", "gather_nd", "one_hot", "take", "take_along_axis"]


def _infer_gather(x: TensorType, indices: TensorType, *, axis: int, batch_dims: int) -> TensorType:
    if x.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise ShapeError(f"the first {batch_dims} sizes differ")
    if axis < batch_dims:
        raise ShapeError(f"axis {axis} lies before the {batch_dims} batch axes")
    if x.shape[axis] == 0 and indices.size:
        raise ShapeError(f"axis {axis} is empty: there is nothing to gather")
    shape = (*x.shape[:axis], *indices.shape[batch_dims:], *x.shape[axis + 1 :])
    return TensorType(x.dtype, shape)


def _read_batch_dims(value: Any, known: InputTypes) -> int:
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
    _infer_gather,
    attributes={
        "axis": attributes.axis("x", 0),
        "batch_dims": Attribute(_read_batch_dims, 0, "int in [0, rank of indices]"),
    },
    accepts={"indices": dt.INTEGER},
    linear=("x",),
)


def _read_depth(indices: Shape, shape: Shape) -> int:
    """Return the number of axes of ``shape`` that each row of the indices addresses."""
    if not indices:
        raise ShapeError("indices must have at least rank 1")
    depth = indices[-1]
    if depth > len(shape):
        raise ShapeError(f"indices of depth {depth} do not fit shape {list(shape)}")
    return depth


def _infer_gather_nd(params: TensorType, indices: TensorType) -> TensorType:
    depth = _read_depth(indices.shape, params.shape)
    shape = (*indices.shape[:-1], *params.shape[depth:])
    if shapes.size(indices.shape[:-1]) and not shapes.size(params.shape[:depth]):
        raise ShapeError("params is empty: there is nothing to gather")
    return TensorType(params.dtype, shape)


GATHER_ND = KernelSpec(
    "GatherNd",
    ("params", "indices"),
    _infer_gather_nd,
    accepts={"indices": dt.INTEGER},
    linear=("params",),
)


def scatter_depth(indices: Shape, updates: Shape, shape: Shape) -> int:
    """Return the number of axes that each index of a scatter addresses, from the inputs' shapes.

    Indices of rank 1 are one index (TensorFlow) or, if the shape of the updates requires it, one
    index of depth 1 for each update (TensorFlow.js).

    ``indices``: the shape of the indices.

    Raises:
        ShapeError: the shape of the updates allows neither.

    """
    if len(indices) == 1 and shape and updates == (*indices, *shape[1:]):
        return 1
    depth = _read_depth(indices, shape)
    expected = (*indices[:-1], *shape[depth:])
    if updates != expected:
        raise ShapeError(f"updates must have shape {list(expected)}")
    return depth


def _infer_one_hot(
    indices: TensorType, *, depth: int, on_value: Scalar, off_value: Scalar, dtype: DType
) -> TensorType:
    dt.check_number(on_value, dtype)
    dt.check_number(off_value, dtype)
    return TensorType(dtype, (*indices.shape, depth))


ONE_HOT = KernelSpec(
    "OneHot",
    ("indices",),
    _infer_one_hot,
    attributes={
        "depth": attributes.integer(at_least=0),
        "on_value": attributes.number(1),
        "off_value": attributes.number(0),
        "dtype": attributes.dtype("float32"),
    },
    accepts=dt.INTEGER,
    leading=(),
)


@chained
def gather(x: TensorLike, indices: ArrayLike, axis: int = 0, *, batch_dims: int = 0) -> Tensor:
    """Return the slices of ``x`` at ``indices`` along ``axis``.

    The result has the shape ``x.shape[:axis] + indices.shape[batch_dims:] + x.shape[axis+1:]``.
    Negative indices count from the end. For an axis of length n, an index outside ``[-n, n)`` is
    an error on the CPU and gives an unspecified element on devices that cannot raise.

    Args:
        x: a tensor of any dtype.
        indices: integers of any rank.
        axis: the axis that the indices replace.
        batch_dims: the number of leading axes that ``x`` and ``indices`` share.

    Raises:
        ShapeError: ``axis`` or ``batch_dims`` is out of range, the shared sizes differ, or the
            axis is empty.
        DTypeError: the indices are not integers.
        OutOfRangeError: an index is out of range and the device can detect it.

    Source: TensorFlow's GatherV2.

    Examples:
        >>> x = tp.asarray([[1, 2], [3, 4], [5, 6]])
        >>> tp.gather(x, [2, 0])
        Tensor([[5, 6],
                [1, 2]], dtype=int32, device='cpu')
        >>> tp.gather(x, [1, 1, -2], axis=1)
        Tensor([[2, 2, 1],
                [4, 4, 3],
                [6, 6, 5]], dtype=int32, device='cpu')
        >>> tp.gather(x, [[0], [1], [1]], axis=1, batch_dims=1)  # for each row its own index
        Tensor([[1],
                [4],
                [6]], dtype=int32, device='cpu')

    """
    if axis.__class__ is int and axis == 0 and batch_dims.__class__ is int and not batch_dims:
        return dispatch_binary(GATHER_V2, x, indices)  # a faster path for the defaults
    return dispatch(GATHER_V2, x, indices, axis=axis, batch_dims=batch_dims)


@chained
def take(x: TensorLike, indices: ArrayLike, /, axis: int | None = None) -> Tensor:
    """Return the elements, or slices, of ``x`` at ``indices`` along ``axis``.

    Args:
        x: a tensor of any dtype.
        indices: integers, of any rank; their axes replace ``axis``. Negative ones count from the
            end.
        axis: optional if ``x`` has rank 1.

    Raises:
        ShapeError: ``axis`` is out of range.
        ArgumentError: ``axis`` is missing; or an index is out of range and the device can detect
            it (see ``gather``).

    Source: the array API standard 2025.12.

    Examples:
        >>> tp.take([10, 20, 30, 40], [[0, 1], [-1, -2]])
        Tensor([[10, 20],
                [40, 30]], dtype=int32, device='cpu')
        >>> tp.take([[1, 2], [3, 4]], [1, 0], axis=1)
        Tensor([[2, 1],
                [4, 3]], dtype=int32, device='cpu')

    """
    if axis is None:
        x = as_tensor(x, what="take: x")
        if x.ndim != 1:
            raise ArgumentError(f"take: axis is missing, and x is {x.type}")
        axis = 0
    return dispatch(GATHER_V2, x, indices, axis=axis, batch_dims=0)


@chained
def take_along_axis(x: TensorLike, indices: ArrayLike, /, axis: int = -1) -> Tensor:
    """Return ``out[..., i, ...] = x[..., indices[..., i, ...], ...]``, with i on ``axis``.

    Args:
        x: a tensor of any dtype.
        indices: integers, of the rank of ``x``, such as the result of ``argsort``. The other axes
            broadcast against those of ``x``. Negative indices count from the end.
        axis: the axis that the indices refer to.

    Raises:
        ShapeError: ``axis`` is out of range, the ranks differ, or the shapes do not broadcast.
        ArgumentError: an index is out of range and the device can detect it (see ``gather``).

    Source: the array API standard 2025.12.

    Examples:
        >>> x = tp.asarray([[30, 10, 20], [5, 6, 4]])
        >>> order = tp.argsort(x, axis=1)
        >>> tp.take_along_axis(x, order, axis=1)
        Tensor([[10, 20, 30],
                [ 4,  5,  6]], dtype=int32, device='cpu')
        >>> tp.take_along_axis(x, tp.argmax(x, axis=1, keepdims=True), axis=1)
        Tensor([[30],
                [ 6]], dtype=int32, device='cpu')

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

    def spread(operand: Tensor) -> Tensor:
        target = (*common[:at], operand.shape[at], *common[at + 1 :])
        wide = operand if operand.shape == target else movement.broadcast_to(operand, target)
        return _swap_axes(wide, at, last)

    gathered = gather(spread(x), spread(indices), axis=last, batch_dims=last)
    return _swap_axes(gathered, at, last)


def _swap_axes(x: Tensor, a: int, b: int) -> Tensor:
    if a == b:
        return x
    order = list(range(x.ndim))
    order[a], order[b] = b, a
    return movement.permute_dims(x, order)


def gather_nd(x: TensorLike, indices: ArrayLike, /) -> Tensor:
    """Return the elements, or slices, of ``x`` at the rows of ``indices``.

    The last axis of ``indices`` (length d) holds one index for each of the first d axes of
    ``x``; the result has the shape ``indices.shape[:-1] + x.shape[d:]``. Negative indices count
    from the end; see ``gather`` for indices out of range.

    Raises:
        ShapeError: d is greater than the rank of ``x``, or ``indices`` has rank 0.
        DTypeError: the indices are not integers.

    Source: TensorFlow's GatherNd.

    Examples:
        >>> x = [[1, 2], [3, 4]]
        >>> tp.gather_nd(x, [[0, 1], [1, 0]])  # elements
        Tensor([2, 3], dtype=int32, device='cpu')
        >>> tp.gather_nd(x, [[1], [0]])  # rows
        Tensor([[3, 4],
                [1, 2]], dtype=int32, device='cpu')

    """
    return dispatch(GATHER_ND, x, indices)


def _is_zero(value: Any) -> bool:
    """Return whether a default value is the integer 0, which also means "" for strings."""
    return type(value) is int and value == 0


def one_hot(
    indices: ArrayLike,
    depth: int,
    on_value: Scalar = 1,
    off_value: Scalar = 0,
    *,
    dtype: DTypeLike = dt.float32,
) -> Tensor:
    """Return ``on_value`` where the new last axis equals the index, else ``off_value``.

    An index outside ``[0, depth)`` gives a row of ``off_value``; negative ones do
    not count from the end.

    Args:
        indices: integers of any rank.
        depth: the length of the new axis.
        on_value: a number that ``dtype`` can hold.
        off_value: likewise.
        dtype: of the result.

    Raises:
        DTypeError: the indices are not integers, or the dtype cannot hold a value.
        ArgumentError: ``depth`` is negative or not an integer.

    Source: TensorFlow's OneHot.

    Examples:
        >>> tp.one_hot([0, 2, -1], 3)
        Tensor([[1., 0., 0.],
                [0., 0., 1.],
                [0., 0., 0.]], dtype=float32, device='cpu')
        >>> tp.one_hot([0, 2], 3, 5, -5, dtype=tp.int32)
        Tensor([[ 5, -5, -5],
                [-5, -5,  5]], dtype=int32, device='cpu')

    """
    return dispatch(
        ONE_HOT,
        indices,
        depth=depth,
        on_value=on_value,
        off_value=off_value,
        dtype=dt.of(dtype, "one_hot"),
    )


def flatten_indices(rows: Tensor, shape: Shape) -> Tensor:
    """Return rows of indices, ``[n, depth]``, as row-major positions ``[n]`` in ``shape``."""
    dtype = dt.int32 if shapes.size(shape) < 1 << 31 else dt.int64
    flat = full((rows.shape[0],), 0, dtype=dtype)
    for axis, length in enumerate(shape):
        at = astype(rows[:, axis], dtype)
        flat = flat * length + where(at < 0, at + length, at)
    return flat
