"""Sums over rows of a matrix, as columns, while its blocks are in the cache."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array

__all__ = ["BLOCK", "row_means", "row_sums"]

BLOCK: Final = 1 << 16
"""Elements to take through all steps at a time: few calls of NumPy, and a cache holds them."""

_SHORT: Final = 256  # elements of a row up to which BLAS adds them up


def row_sums(a: Array, b: Array | None = None) -> Array:
    """Return the sum of each row, or of its products with the other's elements, as a column.

    BLAS keeps 32 sums at a time, which is as good as sums of pairs while rows are short.
    """
    length = a.shape[1]
    if length <= _SHORT:
        return np.asarray(np.vecdot(a, _ones(length, a.dtype) if b is None else b)[:, None])
    return np.asarray(np.add.reduce(a if b is None else a * b, axis=1, keepdims=True))


def row_means(a: Array, b: Array | None = None) -> Array:
    """Return ``row_sums`` divided by the length of a row."""
    total = row_sums(a, b)
    total /= a.dtype.type(a.shape[1])
    return total


@cache
def _ones(length: int, dtype: np.dtype[Any]) -> Array:
    return np.ones(length, dtype)
