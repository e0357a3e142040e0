"""Joining tensors along the first, the second or the third axis, whatever their ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorplug as tp
from tensorplug.errors import ArgumentError
from tensorplug.plugin import as_tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import Tensor
    from tensorplug.typing import TensorLike

__all__ = ["column_stack", "dstack", "hstack", "vstack"]


def vstack(xs: Sequence[TensorLike], /) -> Tensor:
    """Return the tensors ``xs`` joined along the first axis; vectors count as rows.

    Their other sizes must be equal; their dtypes are promoted.

    Raises:
        ArgumentError: ``xs`` is not a list of tensors, or is empty.
        ShapeError: the sizes differ.

    Source: NumPy's vstack.

    Examples:
        >>> tp.vstack([[1, 2], [3, 4]])
        Tensor([[1, 2],
                [3, 4]], dtype=int32, device='cpu')
        >>> tp.vstack([[[1, 2], [3, 4]], [5.0, 6.0]])
        Tensor([[1., 2.],
                [3., 4.],
                [5., 6.]], dtype=float32, device='cpu')

    """
    return tp.concat([tp.atleast_2d(x) for x in _read_list(xs, "vstack")], axis=0)


def hstack(xs: Sequence[TensorLike], /) -> Tensor:
    """Return the tensors ``xs`` joined along the second axis, or the only axis of vectors.

    Their other sizes must be equal; their dtypes are promoted.

    Raises:
        ArgumentError: ``xs`` is not a list of tensors, or is empty.
        ShapeError: the sizes differ.

    Source: NumPy's hstack.

    Examples:
        >>> tp.hstack([[1, 2], [3]])
        Tensor([1, 2, 3], dtype=int32, device='cpu')
        >>> tp.hstack([[[1], [2]], [[3], [4]]])
        Tensor([[1, 3],
                [2, 4]], dtype=int32, device='cpu')

    """
    parts = [tp.atleast_1d(x) for x in _read_list(xs, "hstack")]
    return tp.concat(parts, axis=0 if parts[0].ndim == 1 else 1)


def dstack(xs: Sequence[TensorLike], /) -> Tensor:
    """Return the tensors ``xs`` joined along the third axis.

    A vector [n] counts as [1, n, 1], a matrix [m, n] as [m, n, 1]. The other sizes must be
    equal; the dtypes are promoted.

    Raises:
        ArgumentError: ``xs`` is not a list of tensors, or is empty.
        ShapeError: the sizes differ.

    Source: NumPy's dstack.

    Examples:
        >>> tp.dstack([[1, 2], [3, 4]])
        Tensor([[[1, 3],
                 [2, 4]]], dtype=int32, device='cpu')
        >>> tp.dstack([tp.zeros((4, 5)), tp.ones((4, 5))]).shape
        (4, 5, 2)

    """
    return tp.concat([tp.atleast_3d(x) for x in _read_list(xs, "dstack")], axis=2)


def column_stack(xs: Sequence[TensorLike], /) -> Tensor:
    """Return the tensors ``xs`` joined along the second axis; vectors count as columns.

    The other sizes must be equal; the dtypes are promoted.

    Raises:
        ArgumentError: ``xs`` is not a list of tensors, or is empty.
        ShapeError: the sizes differ.

    Source: NumPy's column_stack.

    Examples:
        >>> tp.column_stack([[1, 2], [3, 4]])
        Tensor([[1, 3],
                [2, 4]], dtype=int32, device='cpu')
        >>> tp.column_stack([[1, 2], [[3, 4], [5, 6]]])
        Tensor([[1, 3, 4],
                [2, 5, 6]], dtype=int32, device='cpu')

    """
    parts = _read_list(xs, "column_stack")
    columns = [part if part.ndim > 1 else tp.reshape(part, (part.size, 1)) for part in parts]
    return tp.concat(columns, axis=1)


def _read_list(xs: object, caller: str) -> list[Tensor]:
    if not isinstance(xs, list | tuple) or not xs:
        described = "an empty list" if isinstance(xs, list | tuple) else type(xs).__name__
        raise ArgumentError(f"{caller}: xs must be a list of at least one tensor, got {described}")
    return [as_tensor(x, what=f"{caller}: xs") for x in xs]
