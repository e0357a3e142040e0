"""Writing at indices, where several updates of one place are combined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import choice
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, dispatch
from tensorplug.errors import DTypeError, ShapeError
from tensorplug.ops import joining, movement
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.indexing import indexing, writing
from tensorplug.ops.indexing.setting import cast_value
from tensorplug.ops.ranges import arange

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, TensorLike

__all__ = ["scatter_along_axis", "tensor_scatter_reduce"]


REDUCTIONS: Final = ("add", "multiply", "max", "min")


def _infer_scatter_reduce(
    tensor: TensorType, indices: TensorType, updates: TensorType, *, reduction: str
) -> TensorType:
    if reduction in ("max", "min") and tensor.dtype in dt.COMPLEX:
        raise DTypeError(f"{tensor.dtype} has no order, so reduction {reduction!r} is impossible")
    indexing.scatter_depth(indices.shape, updates.shape, tensor.shape)
    if updates.size and not tensor.size:
        raise ShapeError(f"tensor is empty, {tensor}: there is nowhere to scatter to")
    return tensor


TENSOR_SCATTER_REDUCE = KernelSpec(
    "TensorScatterReduce",
    ("tensor", "indices", "updates"),
    _infer_scatter_reduce,
    attributes={
        "reduction": attributes.choice(*REDUCTIONS),
        "include_self": attributes.flag(default=True),
    },
    accepts={"tensor": dt.NUMERIC, "indices": dt.INTEGER, "updates": dt.NUMERIC},
    promote=("tensor", "updates"),
)


def tensor_scatter_reduce(
    tensor: ArrayLike,
    indices: ArrayLike,
    updates: ArrayLike,
    reduction: Literal["add", "multiply", "max", "min"],
    *,
    include_self: bool = True,
) -> Tensor:
    """Return a copy of ``tensor`` with each element combined with the updates at its place.

    Args:
        tensor: numbers.
        indices: integers, as for ``scatter_nd``: the last axis (length d) holds one index for
            each of the first d axes of ``tensor``. Negative indices count from the end.
        updates: ``[*indices.shape[:-1], *tensor.shape[d:]]``, numbers.
        reduction: "add", "multiply", "max" or "min". With the latter two, NaN wins.
        include_self: whether the element of ``tensor`` takes part. If not, the updates replace
            it. Elements without an update are never changed.

    Returns:
        A tensor of the shape of ``tensor`` and of the promoted dtype. Sums and products of
        integers wrap. The order in which floats are added or multiplied is unspecified. The
        gradient of an extremum is shared equally among the operands that equal it.

    Raises:
        ShapeError: the indices do not fit the tensor, or the updates do not fit the indices.
        DTypeError: the maximum or minimum of complex numbers.
        ArgumentError: an unknown reduction; or an index is out of range, on devices that detect
            it. Other devices drop the update.

    Source: TensorFlow's TensorScatterAdd, Max and Min, ONNX's ScatterND.

    Examples:
        >>> tp.tensor_scatter_reduce([1, 5], [[0], [0]], [4, 2], "max")
        Tensor([4, 5], dtype=int32, device='cpu')
        >>> tp.tensor_scatter_reduce([1, 5], [[0], [0]], [4, 2], "add")
        Tensor([7, 5], dtype=int32, device='cpu')
        >>> tp.tensor_scatter_reduce([1, 5], [[0], [0]], [4, 2], "add", include_self=False)
        Tensor([6, 5], dtype=int32, device='cpu')

    """
    return dispatch(
        TENSOR_SCATTER_REDUCE,
        tensor,
        indices,
        updates,
        reduction=reduction,
        include_self=include_self,
    )


def scatter_along_axis(
    x: TensorLike,
    indices: ArrayLike,
    values: TensorLike,
    /,
    axis: int = -1,
    *,
    reduction: Literal["add", "multiply", "max", "min"] | None = None,
) -> Tensor:
    """Return a copy of ``x`` with ``x[..., indices[..., i, ...], ...] = values[..., i, ...]``.

    The index ``i`` runs along ``axis``. It is the counterpart of ``take_along_axis``.

    Args:
        x: a tensor, of any dtype if there is no reduction, else of numbers.
        indices: integers, of the rank of ``x``. The sizes of the other axes are those of ``x``
            or 1. Negative indices count from the end.
        values: they broadcast to the shape of ``indices`` with the other axes of ``x``. Integers
            are cast to floats and floats to shorter ones, as in ``x[...] = values``.
        axis: the axis that the indices refer to.
        reduction: None: the value replaces the element, and the last of several wins. "add",
            "multiply", "max", "min": see ``tensor_scatter_reduce``.

    Returns:
        A tensor of the type of ``x``. It is differentiable in ``x`` and ``values``.

    Raises:
        ShapeError: ``axis`` is out of range, the ranks differ, or the shapes do not broadcast.
        DTypeError: the indices are not integers, or the values cannot be cast to the dtype of x.
        ArgumentError: an unknown reduction; or an index is out of range, on devices that detect
            it (see ``gather``).

    Source: ONNX's ScatterElements. ``numpy.put_along_axis`` writes in place instead.

    Examples:
        >>> tp.scatter_along_axis([[1, 2], [3, 4]], [[1], [0]], 9)
        Tensor([[1, 9],
                [9, 4]], dtype=int32, device='cpu')
        >>> tp.scatter_along_axis([[1, 2], [3, 4]], [[0, 0]], 10, axis=0, reduction="add")
        Tensor([[11, 12],
                [ 3,  4]], dtype=int32, device='cpu')

    """
    who = "scatter_along_axis"
    choice(reduction, (None, *REDUCTIONS), f"{who}: reduction")
    x, indices = as_tensor(x, what=f"{who}: x"), as_tensor(indices, what=f"{who}: indices")
    if indices.dtype not in dt.INTEGER:
        raise DTypeError(f"{who}: indices are {indices.type}, but must be integers")
    if indices.ndim != x.ndim:
        raise ShapeError(f"{who}: x is {x.type} and indices are {indices.type}: the ranks differ")
    at = shapes.normalize_axis(axis, x.ndim, f"{who} of {x.type}: axis")
    target = (*x.shape[:at], indices.shape[at], *x.shape[at + 1 :])
    places = _broadcast(indices, target, f"{who}: indices are {indices.type}")
    added = cast_value(values, x, f"{who}: x is {x.type}")
    added = _broadcast(added, target, f"{who}: values are {added.type}")
    rows, front = _number_rows(places, at), _move_last(x, at)
    # Row-major [others, length]: a place is the number of its row and the index along the axis.
    flat = movement.reshape(front, (shapes.size(front.shape[:-1]), x.shape[at]))
    updates = movement.reshape(_move_last(added, at), rows.shape[:-1])
    if reduction is None:
        written = writing.tensor_scatter_update(flat, rows, updates)
    else:
        written = tensor_scatter_reduce(flat, rows, updates, reduction)
    return _move_back(movement.reshape(written, front.shape), at)


def _broadcast(x: Tensor, target: shapes.Shape, what: str) -> Tensor:
    if x.shape == target:
        return x
    try:
        fits = shapes.broadcast(x.shape, target) == target
    except ShapeError:
        fits = False
    if not fits:
        raise ShapeError(f"{what}, but must broadcast to {list(target)}")
    return movement.broadcast_to(x, target)


def _number_rows(indices: Tensor, axis: int) -> Tensor:
    """Return ``[others, n, 2]``: for each index the number of its row and the index."""
    last = _move_last(indices, axis)
    count, length = shapes.size(last.shape[:-1]), last.shape[-1]
    dtype = dt.int64 if last.dtype.itemsize == 8 else dt.int32
    columns = astype(movement.reshape(last, (count, length)), dtype)
    numbers = movement.reshape(arange(count, dtype=dtype), (count, 1))
    return joining.stack((movement.broadcast_to(numbers, (count, length)), columns), axis=-1)


def _move_last(x: Tensor, axis: int) -> Tensor:
    if axis == x.ndim - 1:
        return x
    order = (*range(axis), *range(axis + 1, x.ndim), axis)
    return movement.permute_dims(x, order)


def _move_back(x: Tensor, axis: int) -> Tensor:
    if axis == x.ndim - 1:
        return x
    order = (*range(axis), x.ndim - 1, *range(axis, x.ndim - 1))
    return movement.permute_dims(x, order)
