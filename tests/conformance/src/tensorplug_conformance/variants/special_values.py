"""Values that wrong kernels lose: how to put them into an array, and whether it has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_conformance.floats import computing, finfo, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug_conformance.case import Array

    _Loss = tuple[str, Callable[..., Array], Callable[[Array], Array]]


def _with(*places: tuple[int, float]) -> Callable[[Array], Array]:
    """Return a function that puts values into an array, so many eighths of the way in."""

    def put(x: Array) -> Array:
        out = x.copy()
        for eighths, value in places:
            out.flat[(out.size - 1) * eighths // 8] = value
        return out

    return put


def _close(x: Array, seed: int = 0) -> Array:
    """Return numbers about 1 that differ in the last digits alone."""
    order = np.random.default_rng(x.size + seed).permutation(x.size).reshape(x.shape)
    return np.asarray(1 + (order + 1) * (16 * finfo(x.dtype).eps), dtype=x.dtype)


def _halved(x: Array) -> Array:
    """Return ``x`` rounded to half of its digits."""
    fraction, exponent = np.frexp(x)
    half = 2.0 ** (finfo(x.dtype).nmant // 2)
    with np.errstate(over="ignore"):  # the largest is rounded up
        return np.asarray(np.ldexp(np.rint(fraction * half) / half, exponent), dtype=x.dtype)


def _flushed(x: Array) -> Array:
    """Return ``x`` with 0 for subnormals."""
    return np.where(abs(x) < finfo(x.dtype).smallest_normal, x.dtype.type(0), x)


def _subnormal(x: Array, seed: int = 0) -> Array:
    """Return the numbers nearest to 0, of both signs and in no order."""
    least = np.nextafter(np.zeros((), x.dtype), np.ones((), x.dtype))
    steps = (np.arange(x.size) + seed) * 7 % 11 - 5
    return np.asarray(least * steps.astype(x.dtype), dtype=x.dtype).reshape(x.shape)


def _clipped(x: Array) -> Array:
    """Return ``x`` without values that need the highest bit, or one more than that."""
    limits: Any = np.iinfo(x.dtype)
    return np.asarray(np.clip(x, limits.min // 2, limits.max // 2), dtype=x.dtype)


def _signed(x: Array) -> Array:
    """Return unsigned integers read as signed ones."""
    return x.view(f"i{x.dtype.itemsize}")


def _far(x: Array, seed: int = 0) -> Array:
    """Return integers that floats of 24 or 53 bits do not hold, and the extremes."""
    limits: Any = np.iinfo(x.dtype)
    low, high = int(limits.min), int(limits.max)
    values = [high - 2, low + 1, high // 2 + 2, high, low, high - 1, high // 3]
    if x.dtype.itemsize > 2:
        values = [(1 << 24) + 1, (1 << 24) + 3, *values]
    return np.resize(np.roll(np.array(values, dtype=x.dtype), seed), x.shape)


def _is_float(x: Array) -> bool:
    return bool(kind_of(x.dtype) == "f")


def _is_integer(x: Array) -> bool:
    return x.dtype.kind in "iu"


def _has_nan(x: Array) -> bool:
    return _is_float(x) and bool(np.isnan(x).any())


def _has_infinity(x: Array) -> bool:
    return _is_float(x) and bool(np.isinf(x).any())


def is_lucky(x: Array) -> bool:
    """Return whether ordinary numbers of the dtype of ``x`` may be close or tiny by chance.

    Cases may not depend on the seed, so such numbers do not count.
    """
    return _is_float(x) and computing(x.dtype) != x.dtype


def _has_subnormal(x: Array) -> bool:
    if not _is_float(x) or is_lucky(x):
        return False
    return bool(np.any((x != 0) & (np.abs(x) < finfo(x.dtype).tiny)))


def _has_close(x: Array) -> bool:
    """Return whether sorted neighbours differ by a few eps, so that lower precision errs."""
    if not _is_float(x) or is_lucky(x):
        return False
    known = np.unique(x[np.isfinite(x) & (np.abs(x) > _LEAST)])
    with np.errstate(over="ignore"):
        return bool(np.any(np.diff(known) < 64 * finfo(x.dtype).eps * np.abs(known[1:])))


_LEAST: Final = 1e-3  # of smaller numbers, other formats hold as many digits or none


def _has_far(x: Array) -> bool:
    if not _is_integer(x) or not x.size:
        return False
    return int(np.max(x)) > int(np.iinfo(x.dtype).max) // 2


_PLACES: Final = (4, 8, 0, 2, 6, 1, 3, 5, 7)  # the middle first, and the end
# (what, whether an array can hold it, whether it does, what puts it there: the first that shows)
VALUES: Final = (
    ("NaN", _is_float, _has_nan, tuple(_with((at, np.nan)) for at in _PLACES)),
    (
        "infinities",
        _is_float,
        _has_infinity,
        tuple(_with((at, np.inf), (8 - at // 2, -np.inf)) for at in _PLACES),
    ),
    ("close values", _is_float, _has_close, (_close,)),
    ("far integers", _is_integer, _has_far, (_far,)),
)
# Sums of such numbers may be off by more than any of them, so they are for exact kernels.
EXACT: Final = (("subnormals", _is_float, _has_subnormal, (_subnormal,)),)
# (what, what puts it there, what a kernel may make of it)
LOSSES: Final[Mapping[str, Sequence[_Loss]]] = {
    "f": (("close values", _close, _halved), ("subnormals", _subnormal, _flushed)),
    "i": (("far integers", _far, _clipped),),
    "u": (("far integers", _far, _clipped), ("large integers", _far, _signed)),
}
