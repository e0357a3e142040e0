"""Other views of the same elements: flat, with swapped axes, of a higher rank, a diagonal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import shapes
from tensorplug.dispatch.calls import as_tensor, chained
from tensorplug.errors import ShapeError
from tensorplug.ops.arrangement import moveaxis
from tensorplug.ops.linalg import matrices
from tensorplug.ops.movement import permute_dims, reshape

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dispatch.tensor import Tensor

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "copy",
    "diagonal",
    "flatten",
    "ravel",
    "swapaxes",
]


@chained
def flatten(x: Any, /) -> Tensor:
    """Return the elements of ``x`` in row-major order, as a tensor of rank 1.

    It is ``ravel``: tensors are values, so it makes no difference whether they share memory.

    Example::

        tp.flatten([[1, 2], [3, 4]])  # [1, 2, 3, 4]

    """
    return _flatten(x, "flatten")


@chained
def ravel(x: Any, /) -> Tensor:
    """Return the elements of ``x`` in row-major order, as a tensor of rank 1.

    It shares the memory of ``x`` if possible.

    Example::

        tp.ravel([[1, 2], [3, 4]])  # [1, 2, 3, 4]

    Source: NumPy's ravel.

    """
    return _flatten(x, "ravel")


def _flatten(x: Any, caller: str) -> Tensor:
    tensor = as_tensor(x, what=f"{caller}: x")
    return reshape(tensor, (tensor.size,))  # -1 is ambiguous for a tensor without elements


@chained
def copy(x: Any, /) -> Tensor:
    """Return a tensor with the elements of ``x`` in memory of its own.

    Tensors are values: no tensor sees the assignments to another, whether they share memory or
    not. The gradient passes through.

    Example::

        tp.copy([1, 2])  # [1, 2]

    Source: NumPy's copy.

    """
    tensor = as_tensor(x, what="copy: x")
    return reshape(tensor, tensor.shape, copy=True)


@chained
def swapaxes(x: Any, axis1: int, axis2: int, /) -> Tensor:
    """Return ``x`` with two of its axes swapped.

    Raises:
        ShapeError: an axis is out of range.

    Example::

        tp.swapaxes(tp.zeros((2, 3, 4)), 0, -1).shape  # (4, 3, 2)

    Source: NumPy's swapaxes.

    """
    tensor = as_tensor(x, what="swapaxes: x")
    caller = f"swapaxes of {tensor.type}"
    first = shapes.normalize_axis(axis1, tensor.ndim, f"{caller}: axis1")
    second = shapes.normalize_axis(axis2, tensor.ndim, f"{caller}: axis2")
    order = list(range(tensor.ndim))
    order[first], order[second] = second, first
    return permute_dims(tensor, order)


@chained
def diagonal(x: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return the elements of ``x`` at equal positions along two axes.

    ``out[..., i] = x[..., i, ..., i + offset, ...]``, with the first index along ``axis1`` and
    the second along ``axis2``. (``linalg.diagonal`` takes the last two axes.)

    Args:
        x: a tensor of any dtype, of rank 2 or more.
        offset: the diagonal: above the main one if positive, below it if negative. Beyond the
            edges it is empty.
        axis1: the axis of the rows.
        axis2: the axis of the columns.

    Returns:
        The other axes of ``x``, then the diagonal.

    Raises:
        ShapeError: the rank is below 2, an axis is out of range, or both are the same.

    Example::

        tp.diagonal([[1, 2], [3, 4]])  # [1, 4]

    Source: NumPy's diagonal.

    """
    tensor = as_tensor(x, what="diagonal: x")
    if tensor.ndim < 2:
        raise ShapeError(f"diagonal: x must have at least rank 2, got {tensor.type}")
    axes = shapes.distinct_axes(
        (axis1, axis2), tensor.ndim, f"diagonal of {tensor.type}: axis1 and axis2"
    )
    return matrices.diagonal(moveaxis(tensor, axes, (-2, -1)), offset=offset)


def atleast_1d(*xs: Any) -> Any:
    """Return each of ``xs`` with rank 1 at least: a number becomes a vector of length 1.

    Returns:
        A tensor, or a tuple of tensors for more than one argument.

    Example::

        tp.atleast_1d(3)  # [3]

    Source: NumPy's atleast_1d.

    """
    return _raise_ranks(xs, lambda shape: shape or (1,), "atleast_1d")


def atleast_2d(*xs: Any) -> Any:
    """Return each of ``xs`` with rank 2 at least: new axes of length 1 come first.

    Returns:
        A tensor, or a tuple of tensors for more than one argument.

    Example::

        tp.atleast_2d([1, 2])  # [[1, 2]]

    Source: NumPy's atleast_2d.

    """
    return _raise_ranks(xs, lambda shape: (1,) * (2 - len(shape)) + shape, "atleast_2d")


def atleast_3d(*xs: Any) -> Any:
    """Return each of ``xs`` with rank 3 at least.

    A vector [n] becomes [1, n, 1], a matrix [m, n] becomes [m, n, 1].

    Returns:
        A tensor, or a tuple of tensors for more than one argument.

    Example::

        tp.atleast_3d([1, 2])  # [[[1], [2]]]

    Source: NumPy's atleast_3d.

    """
    return _raise_ranks(xs, _extend_to_3, "atleast_3d")


def _extend_to_3(shape: shapes.Shape) -> shapes.Shape:
    front = (1,) * (2 - len(shape))
    return (*front, *shape, 1) if len(shape) < 3 else shape


def _raise_ranks(
    xs: tuple[Any, ...], extend: Callable[[shapes.Shape], shapes.Shape], caller: str
) -> Any:
    tensors = [as_tensor(x, what=f"{caller}: xs") for x in xs]
    raised = tuple(
        tensor if extend(tensor.shape) == tensor.shape else reshape(tensor, extend(tensor.shape))
        for tensor in tensors
    )
    return raised[0] if len(raised) == 1 else raised
