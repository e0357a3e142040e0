"""Logarithms.

A number is 2**k m, m between the roots of 1/2 and of 2, and f = m - 1. In float32,
log(1 + f) = f - f**2 / 2 + f**3 Q(f). In float64, it is 2 s + 2/3 s**3 + ... of s = f / (2 + f),
that is f - (f**2 / 2 - s (f**2 / 2 + s**2 R(s**2))) (fdlibm's ``e_log.c``, Sun Microsystems,
1993). The coefficients of Q and R minimize the largest relative error (reweighted least squares at
Chebyshev's points): 7.5e-10 and 1.3e-18.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from tensorplug.contract import dtypes as dt
from tensorplug.contract.elementary.building import (
    both,
    equal,
    fma,
    in_two_parts,
    polynomial,
    real,
)
from tensorplug.contract.elementary.exponentials import LOG_2_PARTS
from tensorplug.contract.expressions import bitcast, where

if TYPE_CHECKING:
    from tensorplug.contract.expressions import Expression

__all__ = ["log", "log1p", "log2", "log10", "take_any_apart"]

_ROOT_OF_HALF: Final = math.sqrt(0.5)
_LOG_2_E: Final = 1.4426950408889634074
_LOG_10_E: Final = 0.43429448190325182765
_LOG_10_2: Final = Fraction(30102999566398119521373889472449302676818988146210854131, 10**56)
_LOG_10_2_PARTS: Final = {  # as log(2)
    dt.float32: in_two_parts(_LOG_10_2, 11),
    dt.float64: in_two_parts(_LOG_10_2, 33),
}
_SERIES: Final = (  # Q
    0.333333125888,
    -0.250000096183,
    0.20002119149,
    -0.16667993926,
    0.14219545537,
    -0.124056263013,
    0.118882341552,
    -0.116754296003,
    0.0674621565161,
)
_ODD_SERIES: Final = (  # R
    0.66666666666667347557,
    0.39999999999412359717,
    0.28571428742922849967,
    0.22222198515856716035,
    0.18183567438603361478,
    0.15313967442946993028,
    0.14796816137005975972,
)


def _take_apart(x: Expression) -> tuple[Expression, Expression]:
    """Return k and m of x = 2**k m; x is positive and normal, m between roots of 1/2 and 2."""
    layout = real(x)
    root, one = layout.bits_of(_ROOT_OF_HALF), layout.bits_of(1.0)
    shifted = bitcast(x, layout.bits) + (one - root)
    # In the last bits of a power of 2: not all processors convert integers of 64 bits.
    base = 2.0**layout.fraction
    exponent = bitcast((shifted >> layout.fraction) | layout.bits_of(base), x.dtype)
    k = exponent - (base + layout.bias)
    m = bitcast((shifted & ((1 << layout.fraction) - 1)) + root, x.dtype)
    return k, m


def take_any_apart(x: Expression) -> tuple[Expression, Expression]:
    """Return k and m of ``_take_apart`` for any positive number."""
    layout = real(x)
    is_low = x < layout.smallest
    k, m = _take_apart(where(is_low, x * 2.0**layout.fraction, x))
    return where(is_low, k - layout.fraction, k), m


def _log_sum(f: Expression, k: Expression | None, high: float, low: float) -> Expression:
    """Return log(1 + f) + k (high + low), k None for 0."""
    square = f * f
    if f.dtype is dt.float32:
        last = square * f * polynomial(_SERIES, f)
        last = last if k is None else fma(k, low, last)
        last = fma(square, -0.5, last)
    else:
        s = f / (f + 2.0)
        z = s * s
        half = 0.5 * square
        last = s * fma(z, polynomial(_ODD_SERIES, z), half)
        last = last if k is None else fma(k, low, last)
        last = last - half
    result = f + last
    return result if k is None else fma(k, high, result)


def _at_edges(x: Expression, result: Expression, pole: float = 0.0) -> Expression:
    """Return ``result`` where pole < x < infinity, else what a logarithm is there."""
    edge = where(equal(x, pole), -math.inf, where(x < pole, math.nan, x))  # infinity and NaN
    return where(both(pole < x, x < math.inf), result, edge)


def log(x: Expression) -> Expression:
    """Return the natural logarithm."""
    k, m = take_any_apart(x)
    return _at_edges(x, _log_sum(m - 1.0, k, *LOG_2_PARTS[x.dtype]))


def log1p(x: Expression) -> Expression:
    """Return log(1 + x), with its digits also where x is small."""
    # 1 + x = 2**k m; f = m - 1 is rounded once, and is x where k is 0. Four times 2**-k is
    # normal for all k.
    layout = real(x)
    k, _ = _take_apart(1.0 + x)
    exponent = (layout.rounder + layout.bias + 2) - k
    scale = bitcast(bitcast(exponent, layout.bits) << layout.fraction, x.dtype)
    f = fma(0.25 * x, scale, 0.25 * scale - 1.0)
    result = _log_sum(f, k, *LOG_2_PARTS[x.dtype])
    return _at_edges(x, where(abs(x) < 4.0 * layout.smallest, x, result), -1.0)


def log2(x: Expression) -> Expression:
    """Return the logarithm to base 2, of powers of 2 exactly."""
    k, m = take_any_apart(x)
    part = _log_sum(m - 1.0, None, 0.0, 0.0)
    return _at_edges(x, k + part * _LOG_2_E)


def log10(x: Expression) -> Expression:
    """Return the logarithm to base 10."""
    k, m = take_any_apart(x)
    part = _log_sum(m - 1.0, None, 0.0, 0.0)
    high, low = _LOG_10_2_PARTS[x.dtype]
    return _at_edges(x, fma(k, high, fma(part, _LOG_10_E, k * low)))
