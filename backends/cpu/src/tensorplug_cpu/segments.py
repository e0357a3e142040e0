"""Adding up rows by number: what scatters, segment sums and weighted counts share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu.jit.families import row_sums as native_sums

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array


_NARROW: Final = 4  # columns, up to which elements are counted one by one

# How many rows are added one after the other. Longer sums are sums of such sums: an error of 3.5
# eps in 3 bits of the length stays within eps * log2 of it.
_RUN: Final = 8


def row_sums(targets: Array, rows: Array, size: int) -> Array:
    """Return zeros ``[size, width]`` to which each of ``rows`` is added at its target.

    ``targets``: [n] in ``[0, size)``, of NumPy's index type; ``rows``: [n, width], numbers.
    Integers wrap around.
    """
    width = rows.shape[1]
    if not rows.size:
        return np.zeros((size, width), rows.dtype)
    native = native_sums.row_adder(len(targets), width, size, rows.dtype)
    if native is not None:
        return native(targets, rows)
    if width <= _NARROW:
        return _element_sums(targets, rows, size)
    dtype = rows.dtype
    if dtype == np.float16:
        rows = rows.astype(np.float32)
    result = np.zeros((size, width), rows.dtype)
    # The last row of each target is written as it is; what is left has been written over.
    result[targets] = rows
    count = len(targets)
    numbers = np.arange(count)
    last = np.empty(size, np.intp)
    last[targets] = numbers
    left = np.flatnonzero(last.take(targets) != numbers)
    if left.size:
        at, sums = _grouped(targets.take(left), left, rows)
        result[at] += sums
    return result.astype(dtype, copy=False)


def _element_sums(targets: Array, rows: Array, size: int) -> Array:
    """Return the sums of a few columns; floats are added in float64 and rounded once."""
    count, width = rows.shape
    flat = targets
    if width > 1:
        flat = (targets.reshape(count, 1) * width + np.arange(width)).reshape(-1)
    values = rows.reshape(-1)
    total = size * width
    result: Array
    if values.dtype.kind == "c":
        result = np.empty(total, values.dtype)
        result.real = np.bincount(flat, values.real, total)
        result.imag = np.bincount(flat, values.imag, total)
    elif values.dtype.kind == "f":
        result = np.bincount(flat, values, total).astype(values.dtype)
    else:
        result = np.zeros(total, values.dtype)
        np.add.at(result, flat, values)  # one dimension, one dtype: the ufunc's fast loop
    return result.reshape(size, width)


def _grouped(targets: Array, numbers: Array, rows: Array) -> tuple[Array, Array]:
    """Return the distinct targets, and the sums of ``rows[numbers]`` at each.

    Sorted by target, the rows of one target form a run. Runs are cut to a length, and those of
    greatest length come first, so that the k-th rows of all runs that have one are added to
    the first so many sums in one go.
    """
    order = _order(targets)
    targets, numbers = targets.take(order), numbers.take(order)
    while True:
        starts = np.flatnonzero(np.concatenate(([True], targets[1:] != targets[:-1])))
        lengths = np.diff(starts, append=len(targets))
        longest = int(lengths.max())
        if longest > _RUN:
            starts, lengths = _cut(starts, lengths)
        by_length = np.argsort((_RUN - lengths).astype(np.uint8), kind="stable")
        starts = starts.take(by_length)
        sums = rows.take(numbers.take(starts), axis=0)
        shorter = np.bincount(lengths, minlength=_RUN + 1)
        active = len(starts)
        for step in range(1, min(longest, _RUN)):
            active -= int(shorter[step])
            sums[:active] += rows.take(numbers.take(starts[:active] + step), axis=0)
        targets = targets.take(starts)
        if longest <= _RUN:
            return targets, sums
        back = np.argsort(by_length, kind="stable")  # the inverse: into the order of targets
        targets, numbers, rows = targets.take(back), back, sums


def _order(targets: Array) -> Array:
    """Return what sorts ``targets``. Radix sort, which small integers get, takes a third."""
    if targets.max() < 1 << 16:
        targets = targets.astype(np.uint16)
    return np.argsort(targets, kind="stable")


def _cut(starts: Array, lengths: Array) -> tuple[Array, Array]:
    """Return the runs cut into pieces of at most ``_RUN``."""
    pieces = -(-lengths // _RUN)
    first = np.cumsum(pieces) - pieces
    offsets: Any = (np.arange(int(pieces.sum())) - np.repeat(first, pieces)) * _RUN
    return (
        np.repeat(starts, pieces) + offsets,
        np.minimum(np.repeat(lengths, pieces) - offsets, _RUN),
    )
