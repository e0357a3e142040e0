"""The error function in C, in a form that compilers vectorize.

In double precision the coefficients are those of fdlibm's ``s_erf.c`` (Sun Microsystems, 1993):
near 0 erf(x) = x + x R(x**2); around 1 it is a constant plus R(|x| - 1); above, 1 - exp(-x**2 -
0.5625 + R(1 / x**2)) / x. All quotients have the same form, so each coefficient is chosen by
interval, and there is one quotient. In single precision erf is tanh(x P(x**2)), the polynomial
fitted by reweighted least squares to atanh(erf(x)) / x.
"""

from __future__ import annotations

from typing import Final

from tensorplug.plugin import error_function

__all__ = ["TEXTS"]


def _write_ratio_part(part: int) -> str:
    """Return a polynomial in z whose coefficients, one for each interval, are chosen."""
    pieces = [
        piece[part]
        for piece in (
            error_function.NEAR_0,
            error_function.NEAR_1,
            error_function.MIDDLE,
            error_function.FAR,
        )
    ]
    terms = max(map(len, pieces))
    rows = zip(*([*piece, *[0.0] * (terms - len(piece))] for piece in pieces), strict=True)
    chosen = [_choose_by_interval([f"{coefficient!r}" for coefficient in row]) for row in rows]
    result = chosen[-1]
    for coefficient in chosen[-2::-1]:
        result = f"{coefficient}\n    + z * ({result})"
    return result


def _choose_by_interval(values: list[str]) -> str:
    *others, chosen = values
    for end, value in zip(error_function.ENDS[::-1], others[::-1], strict=True):
        chosen = f"size < {end!r} ? {value} : {chosen}"
    return f"({chosen})"


_FIRST, _SECOND, _ = error_function.ENDS
_DOUBLE: Final = f"""
INLINE A a_erf(A x) {{$fuse
  const A size = a_fabs(x) < 6.0 ? a_fabs(x) : 6.0;
  const A square = size * size;
  const A z = size < {_FIRST!r} ? square : size < {_SECOND!r} ? size - 1 : 1 / square;
  const A above = {_write_ratio_part(0)};
  const A below = {_write_ratio_part(1)};
  const A ratio = above / below;
  const A tail = 1 - a_exp(ratio - square - 0.5625) / size;
  const A far = size < {_SECOND!r} ? {error_function.AT_1!r} + ratio : tail;
  return size < {_FIRST!r} ? x + x * ratio : x != x ? x : a_copysign(far, x);
}}"""
_SINGLE: Final = """
INLINE A a_erf(A x) {$fuse
  const A cut = a_fabs(x) < (A)4.2 ? x : a_copysign((A)4.2, x);
  const A z = cut * cut;
  const A inside = (A)1.12837924 + z * ((A)0.102769371 + z * ((A)-1.92496266e-4
    + z * ((A)-6.19251182e-4 + z * ((A)8.74503952e-5 + z * ((A)-5.63992724e-6
    + z * (A)1.40317893e-7)))));
  return x != x ? x : a_tanh(cut * inside);
}"""

TEXTS: Final = {"float": _SINGLE, "double": _DOUBLE}
"""The text of ``a_erf``, by C type."""
