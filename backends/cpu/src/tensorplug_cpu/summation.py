"""Sums whose error grows with the logarithm of the number of terms, along any axes.

NumPy adds in pairs only along the contiguous axis; along another it adds one row after the
other, so that the error grows with the number of rows. Here the axes are merged to a few, the
last one is left to NumPy where it is contiguous, and any other is folded: its four quarters
are added, and so on with the result. Adding four terms loses at most 3 roundings of 1/2 ulp for
every 2 doublings, which keeps the whole within eps * log2(n) * sum(|terms|). Where rows are long,
eight neighbours are added first, which saves writing.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.shapes import Shape
    from tensorplug_cpu.arrays import Array

__all__ = ["summer"]

Group = tuple[int, bool]  # length of neighbouring axes together, and whether they are summed

_add: np.ufunc = np.add  # the general type: NumPy's own is told apart by a literal keepdims

_SHORT = 16  # terms: NumPy spends longer on starting a row than on adding so few
_MANY = 1024  # rows for which that matters
_WIDE = 256  # elements of a row from which eight neighbouring rows are added first
_EIGHTS = 64  # rows from which their 7 roundings are made up for by later fours, in powers of 2
_SMALL = 4096  # float32 elements for which one pass in float64 is faster than folding


def groups(shape: Shape, axes: tuple[int, ...]) -> list[Group]:
    """Return the axes with neighbours of one kind merged and those of length 1 left out."""
    result: list[Group] = []
    for axis, length in enumerate(shape):
        summed = axis in axes
        if length == 1:
            continue
        if result and result[-1][1] == summed:
            result[-1] = (result[-1][0] * length, summed)
        else:
            result.append((length, summed))
    return result


def summer(
    shape: Shape, axes: tuple[int, ...], dtype: np.dtype[Any], *, keep_dims: bool
) -> Callable[[Array], Array]:
    """Return the function that sums arrays of ``shape`` and inexact ``dtype`` along ``axes``."""
    result_shape = tuple(
        1 if axis in axes else length
        for axis, length in enumerate(shape)
        if keep_dims or axis not in axes
    )
    if not prod(shape):
        return lambda _x: np.zeros(result_shape, dtype)
    merged = groups(shape, axes)
    if [summed for _, summed in merged] == [True]:
        return lambda x: np.asarray(np.add.reduce(x.reshape(-1))).reshape(result_shape)
    if dtype == np.float32 and prod(shape) <= _SMALL:
        wide = np.float64

        def in_one_pass(x: Array) -> Array:
            total = _add.reduce(x, axis=axes, keepdims=keep_dims, dtype=wide)
            return np.asarray(total, dtype)

        return in_one_pass
    lengths = tuple(length for length, _ in merged)
    last_first = [at for at in reversed(range(len(merged))) if merged[at][1]]

    def run(x: Array) -> Array:
        total = x.reshape(lengths)
        for at in last_first:
            total = _along(total, at)
        return total.reshape(result_shape)

    return run


def _along(x: Array, axis: int) -> Array:
    """Return the sum along one axis, which is left out."""
    length = x.shape[axis]
    before, after = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    kept = x.shape[:axis] + x.shape[axis + 1 :]
    if length <= _SHORT and before >= _MANY:
        return _paired(x.reshape(before, length, after)).reshape(kept)
    if after == 1:
        return np.asarray(np.add.reduce(np.ascontiguousarray(x), axis=axis)).reshape(kept)
    return _folded(x.reshape(before, length, after)).reshape(kept)


def _paired(x: Array) -> Array:
    """Return the sum along the middle one of three axes, as a tree of rows."""
    rows = [x[:, row] for row in range(x.shape[1])]
    while len(rows) > 1:
        pairs = [a + b for a, b in zip(rows[0::2], rows[1::2], strict=False)]
        rows = [*pairs, rows[-1]] if len(rows) % 2 else pairs
    return rows[0]


def _folded(x: Array) -> Array:
    """Return the sum along the middle one of three axes, four rows to one at a time."""
    before, length, after = x.shape
    if after >= _WIDE and length >= _EIGHTS and not length & (length - 1):
        length //= 8
        x = np.add.reduce(x.reshape(before, length, 8, after), axis=2)
    while length > 4:
        quarter = length // 4
        part = x[:, : 4 * quarter].reshape(before, 4, quarter, after)
        total = np.add.reduce(part, axis=1)
        if length % 4:  # up to 3 rows are left over; one of the others takes them in
            total[:, :1] += np.add.reduce(x[:, 4 * quarter :], axis=1, keepdims=True)
        x, length = total, quarter
    return np.asarray(np.add.reduce(x, axis=1))
