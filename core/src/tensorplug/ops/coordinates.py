"""Where elements are not zero, and picking by masks: shapes that depend on data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.spec import UNKNOWN, KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, chained, dispatch, dispatch_binary, dispatch_unary
from tensorplug.errors import DTypeError, ShapeError
from tensorplug.ops import movement
from tensorplug.ops.indexing import indexing

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

__all__ = ["argwhere", "boolean_mask", "nonzero"]


def _where(condition: TensorType) -> TensorType:
    return TensorType(dt.default_int, (UNKNOWN, condition.rank))


WHERE = KernelSpec("Where", ("condition",), _where, accepts=dt.FIXED)


def argwhere(x: Any, /) -> Tensor:
    """Return the coordinates of the elements that are not zero, in row-major order.

    Args:
        x: a tensor of numbers or booleans, of rank r. NaN is not zero.

    Returns:
        ``[n, r]`` int32, where n depends on the data. Of rank 0: ``[1, 0]`` or ``[0, 0]``.

    Raises:
        DTypeError: ``x`` holds strings.

    (NumPy's argwhere, TensorFlow's Where, TensorFlow.js's whereAsync.)

    """
    return dispatch_unary(WHERE, x)


@chained
def nonzero(x: Any, /) -> tuple[Tensor, ...]:
    """Return where elements are not zero: one tensor for each axis.

    Args:
        x: a tensor of numbers or booleans, of rank 1 at least.

    Returns:
        For each axis an int32 tensor of shape ``[n]``, in row-major order of the elements: an
        index for ``x`` which picks them. n depends on the data.

    Raises:
        ShapeError: ``x`` has rank 0.
        DTypeError: ``x`` holds strings.

    (The array API standard's nonzero.)

    """
    x = as_tensor(x, what="nonzero: x")
    if not x.ndim:
        raise ShapeError("nonzero: x has rank 0; it must have an axis")
    found = dispatch_unary(WHERE, x)
    count = found.shape[0]
    if x.ndim == 1:
        return (movement.reshape(found, (count,)),)
    columns = (movement.slice(found, (0, axis), (count, 1)) for axis in range(x.ndim))
    return tuple(movement.reshape(column, (count,)) for column in columns)


def flatnonzero(x: Tensor) -> Tensor:
    """Return the places of the elements that are not zero in the row-major order of all."""
    return nonzero(movement.reshape(x, (-1,)) if x.ndim != 1 else x)[0]


def boolean_mask(x: Any, mask: Any, axis: int = 0) -> Tensor:
    """Return the slices of ``x`` for which ``mask`` is true.

    Args:
        x: a tensor of any dtype.
        mask: booleans, of rank 1 at least, whose sizes are those of the axes of ``x`` from
            ``axis`` on.
        axis: where the mask begins.

    Returns:
        ``x.shape[:axis] + (n,) + x.shape[axis + mask.ndim:]``, where n is the number of true
        elements. ``x[mask]`` says the same for axis 0.

    Raises:
        DTypeError: the mask is not boolean.
        ShapeError: it does not fit, or has rank 0.

    (TensorFlow's boolean_mask, TensorFlow.js's booleanMaskAsync.)

    """
    x, mask = as_tensor(x, what="boolean_mask: x"), as_tensor(mask, what="boolean_mask: mask")
    if mask.dtype is not dt.bool_:
        raise DTypeError(f"boolean_mask: the mask is {mask.type}, but must be boolean")
    at = shapes.normalize_axis(axis, x.ndim, f"boolean_mask of {x.type}: axis")
    end = at + mask.ndim
    if not mask.ndim or x.shape[at:end] != mask.shape:
        raise ShapeError(
            f"boolean_mask: the mask is {mask.type}, but must have the sizes of x, which is "
            f"{x.type}, from axis {at} on"
        )
    merged = x
    if mask.ndim > 1:
        shape = (*x.shape[:at], mask.size, *x.shape[end:])
        merged = dispatch(movement.RESHAPE, x, shape=shape)
        mask = dispatch(movement.RESHAPE, mask, shape=(mask.size,))
    found = dispatch_unary(WHERE, mask)  # [n, 1]; each n makes a plan for every call that follows
    if not at:
        return dispatch_binary(indexing.GATHER_ND, merged, found)
    return indexing.gather(merged, movement.reshape(found, (found.shape[0],)), axis=at)
