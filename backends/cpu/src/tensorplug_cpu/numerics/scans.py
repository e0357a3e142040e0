"""Running sums and products along one axis of arrays, in a dtype that keeps them accurate.

NumPy's ``accumulate`` crawls along an axis with long rows behind it, and converts dtypes through
small buffers. Here such an axis is walked row by row, and any other in pieces that fit into the
cache, so that a wider working dtype costs little.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_cpu.memory.pool import empty

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Shape
    from tensorplug_cpu.arrays import Array


_PIECE = 1 << 14  # elements whose working copy stays in the cache
_SMALL = 1 << 12  # elements up to which one call is best
_RUN = 128  # terms that a sum adds one by one where no wider dtype hides the rounding
_PAIRED = {np.dtype(np.float64): np.dtype(np.complex128)}
_ROW = 512  # elements at one position of the axis from which a call for each position is worth it


def scanner(
    function: np.ufunc,
    shape: Shape,
    axis: int,
    dtype: np.dtype[Any],
    work: np.dtype[Any],
    *,
    exclusive: bool,
    reverse: bool,
) -> Callable[[Array], Array]:
    """Return the function that scans arrays of ``shape`` along ``axis`` with ``function``.

    ``dtype``: of the result. ``work``: in which is computed; where it is ``dtype`` itself and
    inexact, long sums are put together from pieces, so that their error grows slowly.
    """
    count = prod(shape)
    if count <= _SMALL and not exclusive and not reverse:
        narrow = work != dtype

        def at_once(x: Array) -> Array:
            result: Array = function.accumulate(x, axis=axis, dtype=work)
            return result.astype(dtype) if narrow else result

        return at_once
    before, length, after = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    way = slice(None, None, -1) if reverse else slice(None)
    in_runs = function is np.add and dtype.kind in "fc"

    def run(x: Array) -> Array:
        out = empty((before, length, after), dtype)
        if not count:
            return out.reshape(shape)
        source = x.reshape(before, length, after)[:, way]
        target = out[:, way]
        if exclusive:
            target[:, 0] = function.identity
            source, target = source[:, :-1], target[:, 1:]
        if before * after >= _ROW and after > 1:
            _row_by_row(function, source, target, work)
        elif work == dtype and (not in_runs or length <= _RUN):
            function.accumulate(source, axis=1, dtype=work, out=target)
        elif length * after > _PIECE:
            for block in range(before):
                _long(function, source[block], target[block], work)
        else:
            _short(function, source, target, work)
        return out.reshape(shape)

    return run


def _row_by_row(function: np.ufunc, x: Array, out: Array, work: np.dtype[Any]) -> None:
    """Scan along the middle one of three axes, one call for all elements at one position."""
    if not x.shape[1]:
        return
    out[:, 0] = x[:, 0]
    total = x[:, 0].astype(work)
    restarted = work == out.dtype and work.kind in "fc" and function is np.add
    before: Any = None
    for at in range(1, x.shape[1]):
        if restarted and at % _RUN == 0:
            before, total = out[:, at - 1], np.zeros_like(total)
        function(total, x[:, at], out=total, dtype=work)
        if before is None:
            out[:, at] = total
        else:
            function(before, total, out=out[:, at])


def _short(function: np.ufunc, x: Array, out: Array, work: np.dtype[Any]) -> None:
    """Scan along the middle one of three axes, as many blocks at a time as the cache holds."""
    before, length, after = x.shape
    count = max(1, _PIECE // max(length * after, 1))
    paired = _PAIRED.get(work) if function is np.add and work != out.dtype else None
    for first in range(0, before, count):
        blocks = slice(first, first + count)
        if work == out.dtype:
            _in_runs(x[blocks], out[blocks], 0)
        elif paired is not None and count > 1:
            _in_pairs(x[blocks], out[blocks], paired)
        else:
            piece = x[blocks].astype(work)
            out[blocks] = function.accumulate(piece, axis=1, out=piece)


def _long(function: np.ufunc, x: Array, out: Array, work: np.dtype[Any]) -> None:
    """Scan along the first axis, as much at a time as the cache holds."""
    paired = _PAIRED.get(work) if function is np.add and work != out.dtype else None
    if paired is not None and x.shape[1] == 1:
        _long_in_pairs(x[:, 0], out[:, 0], paired)
        return
    step = max(_RUN, _PIECE // x.shape[1])
    wider = work != out.dtype
    before: Any = function.identity
    for first in range(0, x.shape[0], step):
        part = slice(first, first + step)
        if wider:
            piece = x[part].astype(work)
            piece[0] = function(before, piece[0])
            before = function.accumulate(piece, axis=0, out=piece)[-1]
            out[part] = piece
        else:
            _in_runs(x[None, part], out[None, part], before)
            before = out[part][-1]


def _in_pairs(x: Array, out: Array, paired: np.dtype[Any]) -> None:
    """Sum along the middle one of three axes, one half of the first beside the other."""
    half = (len(x) + 1) // 2
    pairs = np.zeros((half, *x.shape[1:]), paired)
    first, second = pairs.real, pairs.imag
    first[...], second[: len(x) - half] = x[:half], x[half:]
    np.add.accumulate(pairs, axis=1, out=pairs)
    out[:half], out[half:] = first, second[: len(x) - half]


def _long_in_pairs(x: Array, out: Array, paired: np.dtype[Any]) -> None:
    """Sum along a line: the second half of each piece beside the first, which is added to it."""
    pairs = np.zeros(_PIECE // 2, paired)
    first, second = pairs.real, pairs.imag
    before = 0.0
    for start in range(0, len(x), _PIECE):
        source, target = x[start : start + _PIECE], out[start : start + _PIECE]
        half = (len(source) + 1) // 2
        rest = len(source) - half
        first[:half], second[:rest] = source[:half], source[half:]
        first[0] += before
        np.add.accumulate(pairs[:half], out=pairs[:half])
        before = first[half - 1]
        second += before
        target[:half], target[half:] = first[:half], second[:rest]
        if rest:
            before = second[rest - 1]


def _in_runs(x: Array, out: Array, before: Any) -> None:
    """Write ``before`` plus the sums along the middle one of three axes.

    Runs are summed one term after the other, and their ends in the same way.
    """
    blocks, length, after = x.shape
    runs = length // _RUN
    whole = runs * _RUN
    if runs:
        shape = (blocks, runs, _RUN, after)
        sums = out[:, :whole].reshape(shape)
        np.add.accumulate(x[:, :whole].reshape(shape), axis=2, out=sums)
        starts = np.empty((blocks, runs, after), out.dtype)
        starts[:, 0], starts[:, 1:] = before, sums[:, :-1, -1]
        np.add.accumulate(starts, axis=1, out=starts)
        np.add(sums, starts[:, :, None], out=sums)
        before = sums[:, -1:, -1]
    if whole < length:
        rest = np.add.accumulate(x[:, whole:], axis=1, out=out[:, whole:])
        np.add(before, rest, out=rest)
