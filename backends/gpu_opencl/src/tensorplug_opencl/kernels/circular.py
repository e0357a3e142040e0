"""Sine, cosine and tangent in C, in a form that compilers vectorize.

As in ``elementary``, there are no branches. Multiples of pi / 2 are subtracted in parts whose
products with a small integer are exact; Taylor's series is enough for the rest, at most pi / 4.
Where the integer is not small, ``a_is_far`` is true, and OpenCL's functions are the slow path.
"""

from __future__ import annotations

from fractions import Fraction
from math import factorial, floor
from typing import Final, NamedTuple

__all__ = ["TEXTS", "half_pi", "parts", "series"]

_HALF_PI: Final = Fraction(
    31415926535897932384626433832795028841971693993751058209749445923078164062862089986,
    2 * 10**82,
)


class _Reduction(NamedTuple):
    """The range of arguments of a type, and how they are reduced."""

    bits: int  # of each part of pi / 2
    reach: int  # times a part is exact up to this argument
    order: int  # the last power in the series


_REDUCTIONS: Final = {"float": _Reduction(11, 8000, 11), "double": _Reduction(33, 800_000, 19)}

TEXTS: Final = {
    "a_is_far": """
INLINE int a_is_far(A x) { return !(a_fabs(x) < (A)$reach.0); }""",
    "a_quarter_turns": """
#define a_quarter_turns(x) a_whole((x) * (A)0.63661977236758134308)""",
    "a_turn_rest": """
INLINE A a_turn_rest(A x, A whole) {$fuse
  const A k = whole - (A)$rounder;
  return (((x - k * (A)$part_1) - k * (A)$part_2) - k * (A)$part_3) - k * (A)$part_4;
}""",
    "a_sine_near_0": """
INLINE A a_sine_near_0(A r) {$fuse
  const A z = r * r;
  return r + r * z * ($sine_series);
}""",
    "a_cosine_near_0": """
INLINE A a_cosine_near_0(A r) {$fuse
  const A z = r * r;
  return 1 - ((A)0.5 * z - z * z * ($cosine_series));
}""",
    # The sine after ``turns`` more quarter turns.
    "a_turned_sine": """
INLINE A a_turned_sine(A x, A whole, int turns) {
  const A r = a_turn_rest(x, whole);
  const $signed quadrant = a_bits(whole) + turns;
  const A sine = a_sine_near_0(r), cosine = a_cosine_near_0(r);
  const A size = quadrant & 1 ? cosine : sine;
  return quadrant & 2 ? -size : size;
}""",
    "a_sin": """
INLINE A a_sin(A x) { return x == 0 ? x : a_turned_sine(x, a_quarter_turns(x), 0); }""",
    "a_cos": """
INLINE A a_cos(A x) { return a_turned_sine(x, a_quarter_turns(x), 1); }""",
    "a_tan": """
INLINE A a_tan(A x) {
  const A whole = a_quarter_turns(x);
  const A r = a_turn_rest(x, whole);
  const A sine = a_sine_near_0(r), cosine = a_cosine_near_0(r);
  const bool odd = a_bits(whole) & 1;
  return x == 0 ? x : (odd ? -cosine : sine) / (odd ? sine : cosine);
}""",
}


def parts(ctype: str) -> dict[str, str]:
    """Return the texts' constants for ``ctype``: their reach, and parts of pi / 2."""
    bits, reach, _ = _REDUCTIONS[ctype]
    result = {"reach": str(reach)}
    rest = _HALF_PI
    for number in (1, 2, 3):
        scale = 2 ** (bits * number - 1)
        part = Fraction(floor(rest * scale), scale)
        result[f"part_{number}"] = float(part).hex()
        rest -= part
    return {**result, "part_4": float(rest).hex()}


def half_pi(bits: int) -> tuple[float, float]:
    """Return pi / 2 as a number of ``bits`` bits, and the remainder."""
    scale = 2 ** (bits - 1)
    high = Fraction(round(_HALF_PI * scale), scale)
    return float(high), float(_HALF_PI - high)


def series(ctype: str) -> dict[str, list[float]]:
    """Return the coefficients of powers of x**2: of sin after x, of cos after 1 - x**2 / 2."""
    order = _REDUCTIONS[ctype].order
    return {
        "sine_series": [(-1) ** (n // 2) / factorial(n) for n in range(3, order + 1, 2)],
        "cosine_series": [(-1) ** (n // 2) / factorial(n) for n in range(4, order + 2, 2)],
    }
