"""Joining tensors along the first, the second or the third axis, whatever their ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.dispatch.calls import as_tensor
from tensorplug.errors import ArgumentError
from tensorplug.ops.movement import concat, reshape
from tensorplug.ops.shaping import atleast_1d, atleast_2d, atleast_3d

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.dispatch.tensor import Tensor

__all__ = ["column_stack", "dstack", "hstack", "vstack"]


def vstack(xs: Sequence[Any], /) -> Tensor:
    """Return the tensors ``xs`` joined along the first axis; vectors count as rows.

    Their other sizes must be equal; their dtypes are promoted.

    Raises:
        ArgumentError: ``xs`` is not a list of tensors, or is empty.
        ShapeError: the sizes differ.

    Example::

        tp.vstack([[1, 2], [3, 4]])  # [[1, 2], [3, 4]]

    Source: NumPy's vstack.

    """
    return concat([atleast_2d(x) for x in _read_list(xs, "vstack")], axis=0)


def hstack(xs: Sequence[Any], /) -> Tensor:
    """Return the tensors ``xs`` joined along the second axis, or the only one of vectors.

    Their other sizes must be equal; their dtypes are promoted.

    Raises:
        ArgumentError: ``xs`` is not a list of tensors, or is empty.
        ShapeError: the sizes differ.

    Example::

        tp.hstack([[1, 2], [3]])  # [1, 2, 3]

    Source: NumPy's hstack.

    """
    parts = [atleast_1d(x) for x in _read_list(xs, "hstack")]
    return concat(parts, axis=0 if parts[0].ndim == 1 else 1)


def dstack(xs: Sequence[Any], /) -> Tensor:
    """Return the tensors ``xs`` joined along the third axis.

    A vector [n] counts as [1, n, 1], a matrix [m, n] as [m, n, 1]. The other sizes must be
    equal; the dtypes are promoted.

    Raises:
        ArgumentError: ``xs`` is not a list of tensors, or is empty.
        ShapeError: the sizes differ.

    Example::

        tp.dstack([[1, 2], [3, 4]])  # [[[1, 3], [2, 4]]]

    Source: NumPy's dstack.

    """
    return concat([atleast_3d(x) for x in _read_list(xs, "dstack")], axis=2)


def column_stack(xs: Sequence[Any], /) -> Tensor:
    """Return the tensors ``xs`` joined along the second axis; vectors count as columns.

    The other sizes must be equal; the dtypes are promoted.

    Raises:
        ArgumentError: ``xs`` is not a list of tensors, or is empty.
        ShapeError: the sizes differ.

    Example::

        tp.column_stack([[1, 2], [3, 4]])  # [[1, 3], [2, 4]]

    Source: NumPy's column_stack.

    """
    parts = _read_list(xs, "column_stack")
    columns = [part if part.ndim > 1 else reshape(part, (part.size, 1)) for part in parts]
    return concat(columns, axis=1)


def _read_list(xs: object, caller: str) -> list[Tensor]:
    if not isinstance(xs, list | tuple) or not xs:
        given = "an empty list" if isinstance(xs, list | tuple) else type(xs).__name__
        raise ArgumentError(f"{caller}: xs must be a list of at least one tensor, got {given}")
    return [as_tensor(x, what=f"{caller}: xs") for x in xs]
