"""References for rounding, signs, bounds and neighbours."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.corpus import wide
from tensorplug_conformance.oracle.elementwise import arithmetic, inexact

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.case import Array


def _float_by_float(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """Return a function of wide arrays that keeps infinities, NaN and the signs of zeros."""

    def one(x: Any) -> float:
        number = float(x)
        return math.copysign(function(number), number) if math.isfinite(number) else number

    def apply(x: Array) -> Array:
        if x.dtype.kind == "c":
            return np.asarray(apply(x.real) + 1j * apply(x.imag))
        return np.asarray(np.frompyfunc(one, 1, 1)(x)).astype(np.longdouble)

    return apply


def _sign(z: Array) -> Array:
    if z.dtype.kind == "c":
        return np.asarray(np.where(z == 0, 0, z / np.where(z == 0, 1, np.hypot(z.real, z.imag))))
    return np.asarray(np.where(np.isnan(z), np.nan, (z > 0) * 1.0 - (z < 0) * 1.0))


ceil = arithmetic(lambda x: x, _float_by_float(math.ceil), inputs=1)
round = arithmetic(lambda x: x, _float_by_float(lambda x: x.__round__()), inputs=1)
trunc = arithmetic(lambda x: x, _float_by_float(math.trunc), inputs=1)
sign = arithmetic(lambda x: (x > 0) - (x < 0), _sign, inputs=1)
copysign = inexact(lambda a, b: np.where(np.signbit(a) == np.signbit(b), a, -a))


def signbit(x: Array) -> Array:
    """Python's sign, which zeros have too."""
    if x.dtype.kind in "iu":
        return np.asarray(np.frompyfunc(lambda number: number < 0, 1, 1)(wide(x))).astype(bool)
    return np.asarray(
        np.frompyfunc(lambda number: math.copysign(1, number) < 0, 1, 1)(x.astype(object))
    ).astype(bool)


def nextafter(a: Array, b: Array) -> Array:
    """The next float: floats are ordered as their bits are."""
    a, b = np.broadcast_arrays(a, b)
    if a.dtype == np.longdouble:  # for slopes, where the number itself is as good
        return a
    bits = np.dtype(f"i{a.dtype.itemsize}")
    lowest = np.iinfo(bits).min

    def place(x: Array) -> Array:
        raw = np.ascontiguousarray(x).view(bits).reshape(x.shape)
        return np.where(raw < 0, lowest - raw, raw)

    at, target = place(a), place(b)
    moved = np.asarray(at + (target > at) - (target < at))
    with np.errstate(all="ignore"):
        raw = np.where(moved < 0, lowest - moved, moved).astype(bits)
        # The zero next to a negative number is negative.
        raw = np.where((moved == 0) & (at < 0), lowest, raw).astype(bits)
        result = np.ascontiguousarray(raw).view(a.dtype).reshape(a.shape)
        return np.where(np.isnan(a) | np.isnan(b), a + b, np.where(a == b, b, result))


def clip_by_value(x: Array, *, clip_value_min: Any, clip_value_max: Any) -> Array:
    """Python's comparisons, after truncating the bounds of integers."""
    if x.dtype.kind in "iu":
        least, most = _whole(clip_value_min), _whole(clip_value_max)
        clipped = np.frompyfunc(lambda number: min(max(number, least), most), 1, 1)(wide(x))
        return np.asarray(clipped).astype(x.dtype)
    low, high = (np.asarray(array).astype(x.dtype) for array in (clip_value_min, clip_value_max))
    return np.asarray(np.where(x < low, low, np.where(x > high, high, x)))


def _whole(bound: float) -> float:
    return bound if math.isinf(bound) else int(bound)
