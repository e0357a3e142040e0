"""Methods of Tensor that select or rearrange its elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract.arguments import quoted
from tensorplug.errors import ArgumentError
from tensorplug.ops import movement
from tensorplug.ops.elementwise import complexes
from tensorplug.ops.indexing import getting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import Axis, Index


class Indexing:
    """Methods of Tensor."""

    __slots__ = ()

    def __iter__(self: Any) -> Iterator[Tensor]:
        len(self)  # raises for rank 0
        return getting.iterate_rows(self)

    def __contains__(self: Any, value: Any) -> bool:
        elements = self.numpy()
        try:
            return bool(np.isin(value, elements).all())
        except (TypeError, ValueError, MemoryError) as error:
            raise ArgumentError(
                f"{quoted(value)} in {self.type}: NumPy cannot compare them: {error}"
            ) from error

    def __getitem__(self: Any, key: Index) -> Tensor:
        return getting.getitem(self, key)

    @property
    def T(self: Any) -> Tensor:  # noqa: N802  # the array API standard's name
        """The transpose of a matrix.

        Raises:
            ShapeError: the rank is not 2.

        """
        return movement.matrix_transpose(self, rank=2)

    @property
    def mT(self: Any) -> Tensor:  # noqa: N802  # the array API standard's name
        """The last two axes swapped."""
        return movement.matrix_transpose(self)

    def transpose(self: Any, *axes: Axis | None) -> Tensor:
        """Permute the axes, as ``permute_dims``; reverse them by default.

        As in NumPy, the order is one sequence or several integers.
        """
        order: Any = axes[0] if len(axes) == 1 else axes or None
        return movement.permute_dims(self, order)

    @property
    def real(self: Any) -> Tensor:
        """The real parts, as ``tensorplug.real``; a property, as in NumPy."""
        return complexes.real(self)

    @property
    def imag(self: Any) -> Tensor:
        """The imaginary parts, as ``tensorplug.imag``; 0 for real numbers."""
        return complexes.imag(self)
