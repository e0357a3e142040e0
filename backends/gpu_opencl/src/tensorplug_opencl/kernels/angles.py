"""Inverse trigonometric functions in C, in a form that compilers vectorize.

As in ``elementary``, there are no branches. All four are the angle of a point: (1, x), (x, y),
(sqrt(1 - x**2), x) and (x, sqrt(1 - x**2)). pi / 4 or pi / 2 is subtracted where that brings the
tangent of the rest below tan(pi / 8), for which Taylor's series is enough.
"""

from __future__ import annotations

from typing import Final

from tensorplug_opencl.kernels import circular

__all__ = ["TEXTS", "parts", "series"]

_TERMS: Final = {"float": 9, "double": 20}  # of the series: tan(pi / 8)**2 is 0.172

TEXTS: Final = {
    # y >= 0. Lengths near the ends of the range are scaled, so that no sum overflows; two
    # infinities count as two ones.
    "a_angle": """
INLINE A a_angle(A y, A x) {$fuse
  const A size = a_fabs(x);
  const bool endless = y == INFINITY && size == INFINITY;
  const A scale = y > (A)$huge || size > (A)$huge ? (A)0.25 : (A)1;
  const A up = endless ? (A)1 : y * scale, along = endless ? (A)1 : size * scale;
  const bool steep = up > along * (A)2.41421356237309504880;
  const bool flat = !(up > along * (A)0.41421356237309504880);
  const A above = steep ? -along : flat ? up : up - along;
  const A below = steep ? up : flat ? along : up + along;
  const A t = above == 0 && below == 0 ? (A)0 : above / below;
  const A z = t * t;
  const A rest = t - t * z * ($arctangent_series);
  const A turns = steep ? (A)1 : flat ? (A)0 : (A)0.5;
  const bool behind = a_bits(x) < 0;
  const A whole = behind ? 2 - turns : turns;
  const A last = whole * (A)$half_pi_low + (behind ? -rest : rest);
  return whole == 0 ? rest : whole * (A)$half_pi + last;
}""",
    "a_atan": """
INLINE A a_atan(A x) { return a_copysign(a_angle(a_fabs(x), (A)1), x); }""",
    "a_atan2": """
INLINE A a_atan2(A y, A x) { return a_copysign(a_angle(a_fabs(y), x), y); }""",
    "a_leg": "\n#define a_leg(x) a_sqrt((1 - (x)) * (1 + (x)))",
    "a_asin": """
INLINE A a_asin(A x) { return a_copysign(a_angle(a_fabs(x), a_leg(x)), x); }""",
    "a_acos": """
INLINE A a_acos(A x) { return a_angle(a_leg(x), x); }""",
}


def parts(ctype: str) -> dict[str, str]:
    """Return the text's constants for ``ctype``: pi / 2 in two parts, and the bound."""
    high, low = circular.half_pi(24 if ctype == "float" else 53)
    huge = 2.0 ** (125 if ctype == "float" else 1021)
    return {"half_pi": high.hex(), "half_pi_low": low.hex(), "huge": huge.hex()}


def series(ctype: str) -> dict[str, list[float]]:
    """Return the coefficients of powers of t**2: of t - arctan(t) after t**3."""
    return {"arctangent_series": [(-1) ** n / (2 * n + 3) for n in range(_TERMS[ctype])]}
