"""Sums over rows of a matrix, as columns, while its blocks are in the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array

__all__ = ["BLOCK", "RowSums"]

BLOCK: Final = 1 << 16
"""Elements to take through all steps at a time: few calls of NumPy, and a cache holds them."""

_SHORT: Final = 256  # elements of a row up to which BLAS adds them up


class RowSums:
    """Adds up rows of one length.

    BLAS keeps 32 sums at a time, which is as good as sums of pairs while rows are short.
    """

    def __init__(self, length: int, dtype: np.dtype[Any]) -> None:
        self._length = dtype.type(length)
        self._ones = np.ones(length, dtype) if length <= _SHORT else None

    def sums(self, a: Array, b: Array | None = None) -> Array:
        """Return the sum of each row, or of its products with the other's, as a column."""
        if self._ones is not None:
            return np.asarray(np.vecdot(a, self._ones if b is None else b)[:, None])
        return np.asarray(np.add.reduce(a if b is None else a * b, axis=1, keepdims=True))

    def means(self, a: Array, b: Array | None = None) -> Array:
        """Return ``sums`` divided by the length of a row."""
        total = self.sums(a, b)
        total /= self._length
        return total
