"""Powers of numbers.

``x**y`` is ``2**(y log2(x))``, whose exponent reaches 1000 and must be right behind the point to
as many bits as the result has: so the logarithm and its product with y are sums of two numbers,
and so are the first two terms of the series of log(m), 2 s and 2 s**3 / 3. The others are at most
a five thousandth of the sum, so that their rounding does not matter: Taylor's series is used.

The edge cases are those of C's Annex F: ``x**0`` and ``1**y`` are 1 even for NaN.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan
from typing import TYPE_CHECKING, Final

from tensorplug.contract import dtypes as dt
from tensorplug.contract.elementary.building import (
    both,
    either,
    equal,
    fold_sign,
    in_two_parts,
    is_signed,
    polynomial,
    real,
    split,
)
from tensorplug.contract.elementary.exponentials import power_of_2_of_sum
from tensorplug.contract.elementary.logarithms import take_any_apart
from tensorplug.contract.expressions import apply, constant, where

if TYPE_CHECKING:
    from tensorplug.contract.expressions import Expression

__all__ = ["pow"]

_LOG_2_E: Final = Fraction(  # 1 / log(2)
    14426950408889634073599246810018921374266459541529859341354494069, 10**64
)
_TERMS: Final = {dt.float32: 7, dt.float64: 14}

Sum = tuple["Expression", "Expression"]  # of a number and one below its last bit


def pow(x: Expression, y: Expression) -> Expression:
    """Return ``x**y``."""
    size = abs(x)
    half = 0.5 * y
    is_whole = equal(apply("trunc", y), y)
    is_odd = both(is_whole, apply("logical_not", equal(apply("trunc", half), half)))
    result = _power_of_positive(size, y)
    result = where(both(equal(size, 1.0), equal(abs(y), inf)), 1.0, result)
    result = fold_sign(result, both(is_odd, is_signed(x)))
    is_complex = both(both(x < 0.0, size < inf), apply("logical_not", is_whole))
    is_number = both(equal(x, x), equal(y, y))
    result = where(is_complex, nan, where(is_number, result, nan))
    return where(either(equal(y, 0.0), equal(x, 1.0)), 1.0, result)


def _power_of_positive(size: Expression, y: Expression) -> Expression:
    high, low = _log2(size)
    is_zero, is_infinite = equal(size, 0.0), equal(size, inf)
    high = where(is_zero, -inf, where(is_infinite, inf, high))
    low = where(either(is_zero, is_infinite), 0.0, low)
    power = y * high
    return power_of_2_of_sum(power, _product_error(y, high, power) + y * low)


def _log2(x: Expression) -> Sum:
    """Return the logarithm to base 2 of a positive number."""
    k, m = take_any_apart(x)
    f = m - 1.0
    u = 2.0 + f
    s = f / u
    whole = s * u
    rest = ((f - whole) - _product_error(s, u, whole)) - s * (f - (u - 2.0))
    s_low = rest / u
    z, z_low = _multiply((s, s_low), (s, s_low))
    cube, cube_low = _multiply((s, s_low), (z, z_low))
    second, second_low = _multiply((cube, cube_low), _constant(Fraction(2, 3), x))
    series = [2 / (2 * power + 1) for power in range(2, _TERMS[x.dtype])]
    two = 2.0 * s + second
    last = (second - (two - 2.0 * s)) + (
        2.0 * s_low + second_low + cube * z * polynomial(series, z)
    )
    natural = two + last
    q, q_low = _multiply((natural, last - (natural - two)), _constant(_LOG_2_E, x))
    high = k + q
    return high, (q - (high - k)) + q_low


def _constant(value: Fraction, like: Expression) -> Sum:
    high, low = in_two_parts(value, real(like).fraction)
    return constant(high, like.dtype), constant(low, like.dtype)


def _multiply(a: Sum, b: Sum) -> Sum:
    product = a[0] * b[0]
    return product, _product_error(a[0], b[0], product) + (a[0] * b[1] + a[1] * b[0])


def _product_error(a: Expression, b: Expression, product: Expression) -> Expression:
    """Return what ``product`` lacks to the product of a and b (T. J. Dekker, 1971)."""
    a_head, a_tail = split(a)
    b_head, b_tail = split(b)
    return ((a_head * b_head - product) + a_head * b_tail + a_tail * b_head) + a_tail * b_tail
