"""Work on the rows of a matrix, block by block, and sums of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu.execution import parallel

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array


_BLOCK: Final = 1 << 16  # elements that few calls of NumPy take, and a cache holds
_SHARED: Final = 1 << 19  # elements from which threads, which wait for one another, help

_SHORT: Final = 256  # elements of a row up to which BLAS adds them up


def by_blocks(work: Callable[[slice], None], rows: int, length: int) -> None:
    """Call ``work`` for blocks of rows, in several threads if there are many."""
    step = max(1, _BLOCK // length)

    def run_blocks(numbers: Array) -> None:
        end = int(numbers[-1]) + 1
        for first in range(int(numbers[0]), end, step):
            work(slice(first, min(first + step, end)))

    numbers = np.arange(rows)
    if rows * length >= _SHARED:
        parallel.share_out(run_blocks, (), numbers)
    else:
        run_blocks(numbers)


class RowSums:
    """Sums rows of one length.

    BLAS keeps 32 partial sums, which is as accurate as pairwise summation for short rows.
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
