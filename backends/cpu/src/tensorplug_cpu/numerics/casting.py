"""Conversion between dtypes with one result on every platform.

C leaves a float that does not fit an integer type undefined, and processors differ. Here it is
truncated towards zero and wrapped; NaN, infinities and what int64 cannot hold give 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import DType, narrowing
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array


# When converting to these, the processor reports numbers that do not fit, which saves a check.
_FLAGGED = frozenset({dt.int32, dt.int64})


def plain(source: DType, target: DType) -> bool:
    """Return whether NumPy's conversion gives the intended result."""
    if {source, target} & dt.EXTENSIONS:
        return dt.unpacked(source) is dt.unpacked(target)
    narrowing = source in dt.COMPLEX and target not in dt.COMPLEX
    whole = source in dt.FLOATING and target in dt.INTEGER
    return not (target is dt.bool_ or target is dt.string or narrowing or whole)


def copied(result: Array, x: Array) -> None:
    """Write ``x`` into ``result``, converted as NumPy does."""
    np.copyto(result, x, casting="unsafe")


def converter(source: DType, target: DType) -> Callable[[Array], Array]:
    """Return the function that converts arrays of ``source`` to ``target``."""
    wide = dt.unpacked(source)
    if wide is not source and wide is not target:
        onwards = converter(wide, target)
        return lambda x: onwards(x.astype(wide.numpy))
    if target is dt.bool_:
        return lambda x: np.not_equal(x, 0)
    if source in dt.COMPLEX and target not in dt.COMPLEX:
        part = dt.real_part(source)
        if part is target:
            return lambda x: x.real
        onwards = converter(part, target)
        return lambda x: onwards(x.real)
    if target in dt.WHOLE - dt.INTEGER:
        whole = converter(source, dt.unpacked(target))
        return lambda x: whole(x).astype(target.numpy)
    if source in dt.FLOATING and target in dt.INTEGER:
        return _float_to_integer(target)
    return lambda x: narrowing.convert(x, target)


def _float_to_integer(target: DType) -> Callable[[Array], Array]:
    low, high = float(target.min) - 1, float(target.max) + 1
    if target.itemsize == 8:  # in float64, -2**63 - 1 is -2**63, which fits
        low = float(np.nextafter(target.min, -np.inf)) if target.min else -1.0

    flagged = target in _FLAGGED

    def convert(x: Array) -> Array:
        if flagged:
            try:
                with np.errstate(invalid="raise"):
                    return x.astype(target.numpy)
            except FloatingPointError:
                return _wrapped(x.astype(np.float64), target)
        if not x.size or (x.min() > low and x.max() < high):  # False if one is NaN
            return x.astype(target.numpy)
        return _wrapped(x.astype(np.float64), target)

    return convert


def _wrapped(x: Array, target: DType) -> Array:
    """Convert modulo a power of 2, as two's complement does; NaN and infinities give 0.

    The remainder by 2**64 is exact in float64, and fits into uint64.
    """
    whole = np.fmod(np.trunc(np.where(np.isfinite(x), x, 0)), 2.0**64)
    size = np.abs(whole).astype(np.uint64)
    return np.where(whole < 0, -size, size).astype(target.numpy)
