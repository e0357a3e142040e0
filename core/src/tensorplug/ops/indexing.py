"""Reading and writing at indices."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from tensorplug import attributes, shapes
from tensorplug import dtypes as dt
from tensorplug.dispatch import as_tensor, chained, dispatch
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.ops import creation, movement
from tensorplug.spec import Attribute, KernelSpec, TensorType

if TYPE_CHECKING:
    from tensorplug.dtypes import DType, Scalar
    from tensorplug.shapes import Shape
    from tensorplug.spec import InputTypes
    from tensorplug.tensor import Tensor

__all__ = [
    "gather",
    "one_hot",
    "scatter_nd",
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
    attributes={"axis": attributes.axis("x", 0), "batch_dims": Attribute(_batch_dims, 0)},
    accepts={"indices": dt.INTEGER},
)


def _scatter(indices: TensorType, updates: TensorType, *, shape: Shape) -> TensorType:
    if indices.rank < 1:
        raise ShapeError("indices must have at least rank 1")
    depth = indices.shape[-1]
    if depth > len(shape):
        raise ShapeError(f"indices of depth {depth} do not fit shape {list(shape)}")
    wanted = (*indices.shape[:-1], *shape[depth:])
    if updates.shape != wanted:
        raise ShapeError(f"updates must have shape {list(wanted)}")
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
    return dispatch(GATHER_V2, x, indices, axis=axis, batch_dims=batch_dims)


def scatter_nd(indices: Any, updates: Any, shape: Any) -> Tensor:
    """Return zeros of ``shape`` with ``updates`` added at ``indices``; duplicates add up.

    The last axis of ``indices`` (length d) names positions in the first d axes of ``shape``;
    ``updates`` has the shape ``indices.shape[:-1] + shape[d:]``. (TensorFlow's ScatterNd.)
    """
    return dispatch(SCATTER_ND, indices, updates, shape=shape)


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


def getitem(x: Any, key: Any) -> Tensor:
    """Return ``x[key]`` for integers, slices, an ellipsis, None, and one integer tensor.

    Raises:
        ShapeError: too many indices, or one out of range.
        ArgumentError: any other kind of index.

    """
    tensor = as_tensor(x, what="indexing: x")
    parts = _spread(tensor, key if isinstance(key, tuple) else (key,))
    shape: list[int] = []
    axis = 0  # of `tensor`, which keeps its rank until the final reshape
    gathers: list[tuple[int, Any]] = []
    begin, size = [0] * tensor.ndim, list(tensor.shape)
    for part in parts:
        if part is None:
            shape.append(1)
            continue
        if isinstance(part, builtins.slice):
            start, stop, step = _indices(tensor, part, axis)
            count = len(range(start, stop, step))
            if step == 1:
                begin[axis], size[axis] = start if count else 0, count
            else:
                stop = start + count * step
                gathers.append((axis, creation.arange(start, stop, step, dtype=dt.int32)))
            shape.append(count)
        elif _is_index_tensor(part):
            gathers.append((axis, part))
            shape.extend(part.shape)
        else:
            begin[axis] = _position(tensor, part, axis)
            size[axis] = 1
        axis += 1
    result = tensor
    if tuple(size) != tensor.shape:
        result = movement.slice(result, begin, size)
    # From the last axis to the first, so that a gather that changes the rank moves no axis
    # that is still to come.
    for at, picked in reversed(gathers):
        result = gather(result, picked, axis=at)
    return result if result.shape == tuple(shape) else movement.reshape(result, shape)


def _indices(tensor: Tensor, part: builtins.slice, axis: int) -> tuple[int, int, int]:
    try:
        return part.indices(tensor.shape[axis])
    except (TypeError, ValueError) as error:  # a bound that is no integer, a step of 0
        raise ArgumentError(
            f"cannot index axis {axis} of {tensor.type} by {part}: {error}"
        ) from None


def _position(tensor: Tensor, part: Any, axis: int) -> int:
    length = tensor.shape[axis]
    number = shapes.index(part, f"index of axis {axis}")
    if not -length <= number < length:
        raise ShapeError(
            f"index {number} is out of range for axis {axis} of {tensor.type}, which has "
            f"{length} elements"
        )
    return number % length


def _is_index_tensor(part: Any) -> bool:
    return hasattr(part, "dtype") and hasattr(part, "shape") and bool(part.shape)


def _spread(tensor: Tensor, key: tuple[Any, ...]) -> list[Any]:
    """Return one index per axis (and the Nones), with the ellipsis written out."""
    for part in key:
        allowed = part is None or part is Ellipsis or isinstance(part, builtins.slice | int)
        if isinstance(part, bool) or not (
            allowed or hasattr(part, "__index__") or _is_index_tensor(part)
        ):
            raise ArgumentError(f"cannot index {tensor.type} with {part!r}")
        if _is_index_tensor(part) and dt.of(part.dtype) not in dt.INTEGER:
            raise ArgumentError(f"an index tensor must hold integers, got {part.dtype}")
    if sum(_is_index_tensor(part) for part in key) > 1:
        raise ArgumentError("only one index may be a tensor")
    given = sum(part is not None and part is not Ellipsis for part in key)
    if given > tensor.ndim:
        raise ShapeError(f"{given} indices for {tensor.type}")
    if sum(part is Ellipsis for part in key) > 1:
        raise ArgumentError("an index may hold one ellipsis")
    everything = builtins.slice(None)
    fill = [everything] * (tensor.ndim - given)
    at = next((i for i, part in enumerate(key) if part is Ellipsis), None)
    parts = [*key, *fill] if at is None else [*key[:at], *fill, *key[at + 1 :]]
    _refuse_split(tensor, parts)
    return parts


def _refuse_split(tensor: Tensor, parts: list[Any]) -> None:
    """Refuse what NumPy answers by moving the indexed axes to the front."""
    picking = [
        at
        for at, part in enumerate(parts)
        if not (part is None or isinstance(part, builtins.slice))
    ]
    together = not picking or picking[-1] - picking[0] == len(picking) - 1
    if not together and any(_is_index_tensor(parts[at]) for at in picking):
        raise ArgumentError(
            f"cannot index {tensor.type} with an integer and an index tensor that stand apart; "
            "index twice"
        )
