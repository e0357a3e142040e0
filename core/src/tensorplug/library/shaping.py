"""Other views of the same elements: flat, with swapped axes, of a higher rank, a diagonal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import tensorplug as tp
from tensorplug.errors import ShapeError
from tensorplug.library.linalg import matrices
from tensorplug.plugin import as_tensor, chained, shapes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Tensor
    from tensorplug.typing import TensorLike

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
def flatten(x: TensorLike, /) -> Tensor:
    """Return the elements of ``x`` in row-major order, as a tensor of rank 1.

    It is ``ravel``: tensors are values, so it makes no difference whether they share memory.

    Source: NumPy's flatten.

    Examples:
        >>> tp.flatten([[1, 2], [3, 4]])
        Tensor([1, 2, 3, 4], dtype=int32, device='cpu')
        >>> tp.flatten(5)
        Tensor([5], dtype=int32, device='cpu')

    """
    return _flatten(x, "flatten")


@chained
def ravel(x: TensorLike, /) -> Tensor:
    """Return the elements of ``x`` in row-major order, as a tensor of rank 1.

    It shares the memory of ``x`` if possible.

    Source: NumPy's ravel.

    Examples:
        >>> tp.ravel([[1, 2], [3, 4]])
        Tensor([1, 2, 3, 4], dtype=int32, device='cpu')
        >>> tp.ravel(tp.permute_dims([[1, 2], [3, 4]]))  # the order of the result's rows
        Tensor([1, 3, 2, 4], dtype=int32, device='cpu')

    """
    return _flatten(x, "ravel")


def _flatten(x: Any, caller: str) -> Tensor:
    tensor = as_tensor(x, what=f"{caller}: x")
    return tp.reshape(tensor, (tensor.size,))  # -1 is ambiguous for a tensor without elements


@chained
def copy(x: TensorLike, /) -> Tensor:
    """Return a tensor with the elements of ``x`` in memory of its own.

    Tensors are values: no tensor sees the assignments to another, whether they share memory or
    not. The gradient passes through.

    Source: NumPy's copy.

    Examples:
        >>> x = tp.asarray([1, 2])
        >>> y = tp.copy(x)
        >>> y[0] = 9
        >>> x, y
        (Tensor([1, 2], dtype=int32, device='cpu'), Tensor([9, 2], dtype=int32, device='cpu'))

    """
    tensor = as_tensor(x, what="copy: x")
    return tp.reshape(tensor, tensor.shape, copy=True)


@chained
def swapaxes(x: TensorLike, axis1: int, axis2: int, /) -> Tensor:
    """Return ``x`` with two of its axes swapped.

    ``axis1``: the one axis; ``axis2``: the other one; both may be negative.

    Raises:
        ShapeError: an axis is out of range.

    Source: NumPy's swapaxes.

    Examples:
        >>> tp.swapaxes([[1, 2], [3, 4]], 0, 1)
        Tensor([[1, 3],
                [2, 4]], dtype=int32, device='cpu')
        >>> tp.swapaxes(tp.zeros((2, 3, 4)), 0, -1).shape
        (4, 3, 2)

    """
    tensor = as_tensor(x, what="swapaxes: x")
    caller = f"swapaxes of {tensor.type}"
    first = shapes.normalize_axis(axis1, tensor.ndim, f"{caller}: axis1")
    second = shapes.normalize_axis(axis2, tensor.ndim, f"{caller}: axis2")
    order = list(range(tensor.ndim))
    order[first], order[second] = second, first
    return tp.permute_dims(tensor, order)


@chained
def diagonal(x: TensorLike, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
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

    Source: NumPy's diagonal.

    Examples:
        >>> x = [[1, 2, 3], [4, 5, 6]]
        >>> tp.diagonal(x)
        Tensor([1, 5], dtype=int32, device='cpu')
        >>> tp.diagonal(x, offset=1)
        Tensor([2, 6], dtype=int32, device='cpu')
        >>> tp.diagonal(tp.zeros((5, 3, 4, 5)), axis1=0, axis2=-1).shape
        (3, 4, 5)

    """
    tensor = as_tensor(x, what="diagonal: x")
    if tensor.ndim < 2:
        raise ShapeError(f"diagonal: x must have at least rank 2, got {tensor.type}")
    axes = shapes.distinct_axes(
        (axis1, axis2), tensor.ndim, f"diagonal of {tensor.type}: axis1 and axis2"
    )
    return matrices.diagonal(tp.moveaxis(tensor, axes, (-2, -1)), offset=offset)


@overload
def atleast_1d(x: TensorLike, /) -> Tensor: ...
@overload
def atleast_1d(x: TensorLike, y: TensorLike, /, *more: TensorLike) -> tuple[Tensor, ...]: ...
def atleast_1d(*xs: TensorLike) -> Tensor | tuple[Tensor, ...]:
    """Return each of ``xs`` with at least rank 1: a number becomes a vector of length 1.

    Returns:
        A tensor, or a tuple of tensors for more than one argument.

    Source: NumPy's atleast_1d.

    Examples:
        >>> tp.atleast_1d(3)
        Tensor([3], dtype=int32, device='cpu')
        >>> tp.atleast_1d(3, [4, 5])
        (Tensor([3], dtype=int32, device='cpu'), Tensor([4, 5], dtype=int32, device='cpu'))

    """
    return _raise_ranks(xs, lambda shape: shape or (1,), "atleast_1d")


@overload
def atleast_2d(x: TensorLike, /) -> Tensor: ...
@overload
def atleast_2d(x: TensorLike, y: TensorLike, /, *more: TensorLike) -> tuple[Tensor, ...]: ...
def atleast_2d(*xs: TensorLike) -> Tensor | tuple[Tensor, ...]:
    """Return each of ``xs`` with at least rank 2: new axes of length 1 come first.

    Returns:
        A tensor, or a tuple of tensors for more than one argument.

    Source: NumPy's atleast_2d.

    Examples:
        >>> tp.atleast_2d([1, 2])
        Tensor([[1, 2]], dtype=int32, device='cpu')
        >>> tp.atleast_2d(3).shape
        (1, 1)

    """
    return _raise_ranks(xs, lambda shape: (1,) * (2 - len(shape)) + shape, "atleast_2d")


@overload
def atleast_3d(x: TensorLike, /) -> Tensor: ...
@overload
def atleast_3d(x: TensorLike, y: TensorLike, /, *more: TensorLike) -> tuple[Tensor, ...]: ...
def atleast_3d(*xs: TensorLike) -> Tensor | tuple[Tensor, ...]:
    """Return each of ``xs`` with at least rank 3.

    A vector [n] becomes [1, n, 1], a matrix [m, n] becomes [m, n, 1].

    Returns:
        A tensor, or a tuple of tensors for more than one argument.

    Source: NumPy's atleast_3d.

    Examples:
        >>> tp.atleast_3d([1, 2])
        Tensor([[[1],
                 [2]]], dtype=int32, device='cpu')
        >>> [x.shape for x in tp.atleast_3d(1, tp.ones((4, 5)), tp.ones((2, 3, 4, 5)))]
        [(1, 1, 1), (4, 5, 1), (2, 3, 4, 5)]

    """
    return _raise_ranks(xs, _extend_to_3, "atleast_3d")


def _extend_to_3(shape: shapes.Shape) -> shapes.Shape:
    front = (1,) * (2 - len(shape))
    return (*front, *shape, 1) if len(shape) < 3 else shape


def _raise_ranks(
    xs: tuple[Any, ...], extend: Callable[[shapes.Shape], shapes.Shape], caller: str
) -> Tensor | tuple[Tensor, ...]:
    tensors = [as_tensor(x, what=f"{caller}: xs") for x in xs]
    raised = tuple(
        tensor
        if extend(tensor.shape) == tensor.shape
        else tp.reshape(tensor, extend(tensor.shape))
        for tensor in tensors
    )
    return raised[0] if len(raised) == 1 else raised
