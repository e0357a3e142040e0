"""Indexing, and what else takes or rearranges the elements of one tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.ops import complexes, movement
from tensorplug.ops.indexing import getting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.dispatch.tensor import Tensor

__all__ = ["Indexing"]


class Indexing:
    """Methods of Tensor."""

    __slots__ = ()

    def __iter__(self: Any) -> Iterator[Tensor]:
        len(self)  # of rank 0 an error, at once
        return getting.rows(self)

    def __contains__(self: Any, value: Any) -> bool:
        return bool(np.isin(value, self.numpy()).all())

    def __getitem__(self: Any, key: Any) -> Tensor:
        return getting.getitem(self, key)

    @property
    def T(self: Any) -> Tensor:  # noqa: N802  # the array API standard's name
        """The transpose of a matrix.

        Raises:
            ShapeError: when the rank is not 2.

        """
        return movement.matrix_transpose(self, rank=2)

    @property
    def mT(self: Any) -> Tensor:  # noqa: N802  # the array API standard's name
        """The last two axes swapped."""
        return movement.matrix_transpose(self)

    def transpose(self: Any, *axes: Any) -> Tensor:
        """Return the axes in another order, as ``permute_dims``: reversed by default.

        As with NumPy's method, which other libraries call, the order is one sequence or several
        integers.
        """
        return movement.permute_dims(self, axes[0] if len(axes) == 1 else axes or None)

    @property
    def real(self: Any) -> Tensor:
        """The real parts, as ``tensorplug.real``; a property, as NumPy's arrays have it."""
        return complexes.real(self)

    @property
    def imag(self: Any) -> Tensor:
        """The imaginary parts, as ``tensorplug.imag``; 0 for real numbers."""
        return complexes.imag(self)
