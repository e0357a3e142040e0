"""Powers of real numbers in C, in a form that compilers vectorize.

As in ``elementary``, there are no branches. ``x**y`` is ``2**(y log2(x))``, whose exponent reaches
1000 and must be right behind the point to as many bits as the result has: so the logarithm and its
product with y are sums of two numbers, ``high`` and ``low``, and so are the first two terms of the
series of log(m), 2 s and 2 s**3 / 3. The others are at most a five thousandth of the sum, so that
their rounding does not matter.

The edge cases are C's: ``x**0`` and ``1**y`` are 1 even for NaN.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

__all__ = ["TEXTS", "parts", "series"]

_LOG_2_E: Final = Fraction(  # 1 / log(2)
    14426950408889634073599246810018921374266459541529859341354494069, 10**64
)

TEXTS: Final = {
    # size**y for size >= 0; high + low is the logarithm to base 2. u_low is the rounding error of
    # 2 + f.
    "a_power_of": """
INLINE A a_power_of(A size, A y) {
  const bool subnormal = size < (A)$normal;
  const A up = subnormal ? size * (A)$two_to : size;
  const A k = a_exponent(up) - (subnormal ? $fraction : 0);
  const A f = a_fraction(up) - 1;
  const A u = 2 + f, u_low = f - (u - 2);
  const A s = f / u;
  const A s_low = (a_fma(-s, u, f) - s * u_low) / u;
  const A z = s * s, z_low = a_fma(s, s, -z) + 2 * s * s_low;
  const A cube = s * z, cube_low = a_fma(s, z, -cube) + (s * z_low + s_low * z);
  const A second = cube * (A)$third;
  const A off = a_fma(cube, (A)$third, -second);
  const A second_low = off + (cube_low * (A)$third + cube * (A)$third_low);
  const A two = 2 * s + second, two_low = second - (two - 2 * s);
  const A tail = two_low + (2 * s_low + second_low + cube * z * ($power_series));
  const A ln = two + tail, ln_low = tail - (ln - two);
  const A q = ln * (A)$base;
  const A q_low = a_fma(ln, (A)$base, -q) + (ln * (A)$base_low + ln_low * (A)$base);
  const A sum = k + q;
  const bool endless = size == 0 || size == INFINITY;
  const A high = size == 0 ? -INFINITY : size == INFINITY ? INFINITY : sum;
  const A low = endless ? (A)0 : (q - (sum - k)) + q_low;
  const A p = y * high;
  const bool within = a_fabs(p) < (A)$limit;
  const A p_low = within ? a_fma(y, high, -p) + y * low : (A)0;
  const A cut = within ? p : p > 0 ? (A)$limit : -(A)$limit;
  const A whole = a_whole(cut);
  const A half_of_it = a_whole((whole - (A)$rounder) * (A)0.5);
  const A rest = whole - (half_of_it - (A)$rounder);
  const A r = (cut - (whole - (A)$rounder)) + p_low;
  const A result = 1 + a_exp_rest(r * (A)0.69314718055994530942, (A)$rounder);
  return result * a_power_of_2(half_of_it) * a_power_of_2(rest);
}""",
    "a_power": """
INLINE A a_power(A x, A y) {
  const A size = a_fabs(x);
  const bool whole = a_trunc(y) == y;
  const A half_of_it = (A)0.5 * y;
  const bool odd = whole && a_trunc(half_of_it) != half_of_it;
  const A result = a_power_of(size, y);
  const bool imaginary = x < 0 && size < INFINITY && !whole;
  const A known = size == 1 && a_fabs(y) == INFINITY ? (A)1 : result;
  const A real = x != x || y != y || imaginary ? (A)NAN : odd && a_bits(x) < 0 ? -known : known;
  return y == 0 || x == 1 ? (A)1 : real;
}""",
}


def parts(ctype: str) -> dict[str, str]:
    """Return the text's constants for ``ctype``, some of them in two parts.

    Beyond ``limit`` powers of 2 are 0 or infinite.
    """
    bits, limit = (24, 160) if ctype == "float" else (53, 1100)
    base, base_low = _split(_LOG_2_E, bits)
    third, third_low = _split(Fraction(2, 3), bits)
    numbers = {"base": base, "base_low": base_low, "third": third, "third_low": third_low}
    return {"limit": f"{limit}.0", **{name: number.hex() for name, number in numbers.items()}}


def _split(value: Fraction, bits: int) -> tuple[float, float]:
    """Return the number of ``bits`` bits nearest to ``value``, below 2, and the remainder."""
    scale = 2 ** (bits - 1)
    high = Fraction(round(value * scale), scale)
    return float(high), float(value - high)


def series(ctype: str) -> dict[str, list[float]]:
    """Return the coefficients of powers of s**2: of log(m) after the first two terms."""
    last = 7 if ctype == "float" else 14
    return {"power_series": [2 / (2 * n + 1) for n in range(2, last)]}
