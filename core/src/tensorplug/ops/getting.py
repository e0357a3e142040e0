"""Reading by subscripts: ``x[key]``."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from tensorplug import dtypes as dt
from tensorplug import shapes
from tensorplug.dispatch import as_tensor
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.ops import creation, movement
from tensorplug.ops.indexing import gather

if TYPE_CHECKING:
    from tensorplug.tensor import Tensor


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
