"""Sums whose error grows with the logarithm of the number of terms, along any axes.

NumPy adds in pairs only along the contiguous axis; along another it adds one row after the
other, so that the error grows with the number of rows. Here the axes are merged to a few, the
last one is left to NumPy where it is long and contiguous, and any other is *folded*: cut into two,
four or eight parts, one after the other, which are added, and so on with the result. What is small
is summed in float64, as a product with ones, which BLAS computes faster than NumPy adds. Large
arrays of real numbers are summed by loops of their own (``jit.families.reductions``), where LLVM
is there. All of it in float64, once more, where a part of a sum of float32 was too large for that.

A term goes through some roundings of half an ulp: 1 when 2 parts are added, 3 of 4, 7 of 8, one of
the end in float64. As long as they are at most 2 log2(n) for n terms, the error is within
eps * log2(n) * sum(|terms|) for any terms.
"""

from __future__ import annotations

from math import ceil, log2, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_cpu.execution.floating_point import without_overflow
from tensorplug_cpu.jit.families import reductions

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Shape
    from tensorplug_cpu.arrays import Array

    Step = Callable[[Array], Array]


Group = tuple[int, bool]  # length of neighbouring axes together, and whether they are summed

_SHORT = 16  # terms: NumPy spends longer on starting a row than on adding so few
_MANY = 1024  # rows for which that matters
_SMALL = 1 << 14  # float32 elements that are faster summed in float64 than folded
_ROW = 128  # terms of a row, up to which that holds for rows too
_EACH = 256  # elements of each product with ones that make up for its call
_LONG = 1024  # elements of a row, from which the order of memory matters
_BLOCK = 1 << 14  # elements whose copy in float64 stays in the cache
_CUTS = (2, 4, 8)  # parts of one fold
_ACCUMULATED = {"f": np.float64, "c": np.complex128}  # dtypes for sums that are too large


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
    shape: Shape,
    axes: tuple[int, ...],
    dtype: np.dtype[Any],
    *,
    keep_dims: bool,
    wide: np.dtype[Any] | None = None,
) -> Callable[[Array], Array]:
    """Return the function that sums arrays of ``shape`` and inexact ``dtype`` along ``axes``.

    ``keep_dims``: whether the summed axes stay, with length 1. ``wide``: the dtype of the sums
    instead, where one of them or a part of one is too large.
    """
    result_shape = tuple(
        1 if axis in axes else length
        for axis, length in enumerate(shape)
        if keep_dims or axis not in axes
    )
    if not prod(shape):
        return lambda _x: np.zeros(result_shape, dtype)
    merged = groups(shape, axes)
    native = reductions.folder(merged, dtype, dtype, middle)
    if native is not None:
        return lambda x: native(x).reshape(result_shape)
    in_steps = _stepwise(merged, dtype, result_shape)
    if dtype.itemsize == np.dtype(accumulated := _ACCUMULATED[dtype.kind]).itemsize:
        return in_steps

    def in_double(x: Array) -> Array:
        total = np.add.reduce(x, axis=axes, keepdims=True, dtype=accumulated)
        return np.asarray(total).reshape(result_shape).astype(wide or dtype)

    return without_overflow(in_steps, in_double)


def _stepwise(merged: list[Group], dtype: np.dtype[Any], result_shape: Shape) -> Step:
    """Return the function that sums along merged axes, one after the other."""
    if [summed for _, summed in merged] == [True]:
        return lambda x: np.asarray(np.add.reduce(x.reshape(-1))).reshape(result_shape)
    lengths = [length for length, _ in merged]
    steps: list[Step] = []
    for at in reversed(range(len(merged))):
        if merged[at][1]:
            steps.append(_along(prod(lengths[:at]), lengths[at], prod(lengths[at + 1 :]), dtype))
            del lengths[at]

    def run(x: Array) -> Array:
        for step in steps:
            x = step(x)
        return x.reshape(result_shape)

    return run if steps else lambda x: x.reshape(result_shape)


def middle(x: Array) -> Array:
    """Return the sum along the middle one of three axes."""
    before, length, after = x.shape
    return _along(before, length, after, x.dtype)(x)


def _along(before: int, length: int, after: int, dtype: np.dtype[Any]) -> Step:
    """Return what sums along the middle one of three axes, which the array may have merged."""
    small = dtype == np.float32 and before * length * after <= _SMALL
    if after == 1 and small and length <= _ROW:
        ones = np.ones(length)
        return lambda x: x.reshape(before, length).astype(np.float64).dot(ones).astype(dtype)
    if length <= _SHORT and before >= _MANY:
        return lambda x: _paired(x.reshape(before, length, after))
    if after == 1:
        return lambda x: np.asarray(
            np.add.reduce(np.ascontiguousarray(x).reshape(before, length), axis=1)
        )
    return _folding(before, length, after, dtype)


def _paired(x: Array) -> Array:
    """Return the sum along the middle one of three axes, as a tree of rows."""
    rows = [x[:, row] for row in range(x.shape[1])]
    while len(rows) > 1:
        pairs = [a + b for a, b in zip(rows[0::2], rows[1::2], strict=False)]
        rows = [*pairs, rows[-1]] if len(rows) % 2 else pairs
    return rows[0]


def _folding(before: int, length: int, after: int, dtype: np.dtype[Any]) -> Step:
    """Return what sums along the middle one of three axes, where the last is not 1."""
    allowed = 2 * log2(length)  # roundings
    exactly = dtype == np.float32 and (before == 1 or length * after >= _EACH)
    small = _SMALL // (before * after) if exactly else 0  # entries of the axis
    parts = []  # how many entries make one part, for each fold
    left = length
    while left > small and (left > _CUTS[-1] or left - 1 > allowed):
        part = _part(left, allowed, small)
        allowed -= -(-left // part) - 1
        parts.append(part)
        left = part
    last = _in_float64(before, left, after, dtype) if 1 < left <= small else _in_order

    def run(x: Array) -> Array:
        total = x.reshape(before, length, after)
        for part in parts:
            total = _fold(total, part)
        return last(total)

    return run


def _part(length: int, allowed: float, small: int) -> int:
    """Return into parts of which length to cut an axis: up to eight, as roundings allow."""
    best = -(-length // 2)
    for count in _CUTS:
        part = -(-length // count)
        later = ceil(log2(max(part / max(small, 1), 1))) + 2  # halvings, the end, some to spare
        if part == 1 or -(-length // part) - 1 + later > allowed:
            break
        best = part
        if part <= small:
            break
    return best


def _fold(x: Array, part: int) -> Array:
    """Return the sum of parts of the middle one of three axes.

    Long rows are added to their neighbours instead, which reads the memory in order.
    """
    before, length, after = x.shape
    count = length // part
    whole, rest = count * part, length % part
    if count == 2:
        total = np.add(x[:, :part], x[:, part:whole])
    elif count > 2 and after >= _LONG:
        total = np.add.reduce(x[:, :whole].reshape(before, part, count, after), axis=2)
    elif count > 2:
        total = np.add.reduce(x[:, :whole].reshape(before, count, part, after), axis=1)
    else:
        total = x[:, :part].copy()
    if rest:
        begun = total[:, :rest]
        np.add(begun, x[:, whole:], out=begun)
    return np.asarray(total)


def _in_order(x: Array) -> Array:
    """Return the sum along the middle one of three axes, of few entries."""
    return np.asarray(np.add.reduce(x, axis=1)) if x.shape[1] > 1 else x


def summer_in_float64(shape: Shape, axis: int, dtype: np.dtype[Any]) -> Callable[[Array], Array]:
    """Return the function that sums arrays along ``axis`` in float64, and keeps the axis.

    ``dtype``: theirs, a floating one. Rows are converted some at a time, while they are in the
    cache.
    """
    double = np.dtype(np.float64)
    length = shape[axis]
    rows = prod(shape) // max(length, 1)
    kept = (*shape[:axis], 1, *shape[axis + 1 :])
    native = reductions.folder(groups(shape, (axis,)), dtype, double, middle)
    if native is not None:
        return lambda x: native(x).reshape(kept)
    if dtype == double or prod(shape[axis + 1 :]) > 1 or not rows or not length:
        add = summer(shape, (axis,), double, keep_dims=True)
        return lambda x: add(x.astype(double, copy=False))
    ones = np.ones(length)
    step = max(1, _BLOCK // length)

    def run(x: Array) -> Array:
        flat = x.reshape(rows, length)
        if rows <= step:
            return np.asarray(np.dot(flat.astype(double), ones)).reshape(kept)
        total = np.empty(rows)
        for first in range(0, rows, step):
            block = slice(first, first + step)
            np.dot(flat[block].astype(double), ones, out=total[block])
        return total.reshape(kept)

    return run


def _in_float64(before: int, length: int, after: int, dtype: np.dtype[Any]) -> Step:
    """Return what sums along the middle one of three axes without loss, rounding the result."""
    ones = np.ones(length)
    if before == 1:
        return lambda x: ones.dot(x.reshape(length, after).astype(np.float64)).astype(dtype)
    return lambda x: np.asarray(np.matmul(ones, x.astype(np.float64)).astype(dtype))
