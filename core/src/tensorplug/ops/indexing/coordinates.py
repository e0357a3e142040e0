"""Coordinates of nonzero elements, and selection by masks. The shapes depend on the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.spec import UNKNOWN, KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, chained, dispatch, dispatch_binary, dispatch_unary
from tensorplug.errors import DTypeError, ShapeError
from tensorplug.ops import extents, movement
from tensorplug.ops.default_integers import gives_indices
from tensorplug.ops.indexing import indexing

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, TensorLike

__all__ = ["argwhere", "boolean_mask", "nonzero"]


def _infer_where(condition: TensorType) -> TensorType:
    return TensorType(dt.kernel_int, (UNKNOWN, condition.rank))


WHERE = KernelSpec("Where", ("condition",), _infer_where, accepts=dt.FIXED)


@gives_indices()
def argwhere(x: ArrayLike, /) -> Tensor:
    """Return the coordinates of nonzero elements, in row-major order.

    Args:
        x: a tensor of numbers or booleans, of rank r. NaN is nonzero.

    Returns:
        ``[n, r]`` int32, where n depends on the data. For rank 0: ``[1, 0]`` or ``[0, 0]``.

    Raises:
        DTypeError: ``x`` holds strings.

    Source: NumPy's argwhere; TensorFlow's Where, TensorFlow.js's whereAsync.

    Examples:
        >>> tp.argwhere([[0, 7], [5, 0], [1, 1]])
        Tensor([[0, 1],
                [1, 0],
                [2, 0],
                [2, 1]], dtype=int32, device='cpu')

    """
    return dispatch_unary(WHERE, x)


@chained
@gives_indices()
def nonzero(x: ArrayLike, /) -> tuple[Tensor, ...]:
    """Return the indices of nonzero elements: one tensor per axis.

    Args:
        x: a tensor of numbers or booleans, of rank 1 or more.

    Returns:
        One int32 tensor of shape ``[n]`` per axis, in row-major order of the elements, where n
        depends on the data. The tuple can index ``x``.

    Raises:
        ShapeError: ``x`` has rank 0.
        DTypeError: ``x`` holds strings.

    Source: the array API standard 2025.12.

    Examples:
        >>> x = tp.asarray([[0, 7], [5, 0]])
        >>> rows, columns = tp.nonzero(x)
        >>> rows
        Tensor([0, 1], dtype=int32, device='cpu')
        >>> columns
        Tensor([1, 0], dtype=int32, device='cpu')
        >>> x[tp.nonzero(x)]
        Tensor([7, 5], dtype=int32, device='cpu')

    """
    x = as_tensor(x, what="nonzero: x")
    if not x.ndim:
        raise ShapeError("nonzero: x must have at least rank 1, got rank 0")
    coordinates = dispatch_unary(WHERE, x)
    count = coordinates.shape[0]
    if x.ndim == 1:
        return (movement.reshape(coordinates, (count,)),)
    columns = (extents.slice(coordinates, (0, axis), (count, 1)) for axis in range(x.ndim))
    return tuple(movement.reshape(column, (count,)) for column in columns)


def flatnonzero(x: Tensor) -> Tensor:
    """Return the row-major positions of nonzero elements, as NumPy's ``flatnonzero``."""
    return nonzero(movement.reshape(x, (-1,)) if x.ndim != 1 else x)[0]


def boolean_mask(x: TensorLike, mask: ArrayLike, axis: int = 0) -> Tensor:
    """Return the slices of ``x`` where ``mask`` is true.

    Args:
        x: a tensor of any dtype.
        mask: booleans, of rank 1 or more, with the sizes of ``x`` from ``axis`` on.
        axis: the axis of ``x`` that corresponds to the first axis of the mask.

    Returns:
        ``x.shape[:axis] + (n,) + x.shape[axis + mask.ndim:]``, where n is the number of true
        elements. ``x[mask]`` does the same for axis 0.

    Raises:
        DTypeError: the mask is not boolean.
        ShapeError: the mask does not fit ``x``, or has rank 0.

    Source: TensorFlow's boolean_mask, TensorFlow.js's booleanMaskAsync.

    Examples:
        >>> x = tp.asarray([[1, 2], [3, 4], [5, 6]])
        >>> tp.boolean_mask(x, [True, False, True])
        Tensor([[1, 2],
                [5, 6]], dtype=int32, device='cpu')
        >>> tp.boolean_mask(x, [False, True], axis=1)
        Tensor([[2],
                [4],
                [6]], dtype=int32, device='cpu')
        >>> tp.boolean_mask(x, x > 3)
        Tensor([4, 5, 6], dtype=int32, device='cpu')

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
    positions = dispatch_unary(WHERE, mask)  # [n, 1]; the calls below need new plans for each n
    if not at:
        return dispatch_binary(indexing.GATHER_ND, merged, positions)
    return indexing.gather(merged, movement.reshape(positions, (positions.shape[0],)), axis=at)
