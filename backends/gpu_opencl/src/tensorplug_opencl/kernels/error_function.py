"""The error function in C, in a form that compilers vectorize.

In double precision the coefficients are those of fdlibm's ``s_erf.c`` (Sun Microsystems, 1993):
near 0 erf(x) = x + x R(x**2); around 1 it is a constant plus R(|x| - 1); above, 1 - exp(-x**2 -
0.5625 + R(1 / x**2)) / x. All quotients have the same form, so each coefficient is chosen by
interval, and there is one quotient. In single precision erf is tanh(x P(x**2)), the polynomial
fitted by reweighted least squares to atanh(erf(x)) / x.
"""

from __future__ import annotations

from typing import Final

__all__ = ["TEXTS"]

_NEAR_0: Final = (
    (
        1.28379167095512558561e-01,
        -3.25042107247001499370e-01,
        -2.84817495755985104766e-02,
        -5.77027029648944159157e-03,
        -2.37630166566501626084e-05,
    ),
    (
        1.0,
        3.97917223959155352819e-01,
        6.50222499887672944485e-02,
        5.08130628187576562776e-03,
        1.32494738004321644526e-04,
        -3.96022827877536812320e-06,
    ),
)
_AT_1: Final = 8.45062911510467529297e-01  # about erf(1), with few bits, so that adding is exact
_NEAR_1: Final = (
    (
        -2.36211856075265944077e-03,
        4.14856118683748331666e-01,
        -3.72207876035701323847e-01,
        3.18346619901161753674e-01,
        -1.10894694282396677476e-01,
        3.54783043256182359371e-02,
        -2.16637559486879084300e-03,
    ),
    (
        1.0,
        1.06420880400844228286e-01,
        5.40397917702171048937e-01,
        7.18286544141962662868e-02,
        1.26171219808761642112e-01,
        1.36370839120290507362e-02,
        1.19844998467991074170e-02,
    ),
)
_MIDDLE: Final = (
    (
        -9.86494403484714822705e-03,
        -6.93858572707181764372e-01,
        -1.05586262253232909814e01,
        -6.23753324503260060396e01,
        -1.62396669462573470355e02,
        -1.84605092906711035994e02,
        -8.12874355063065934246e01,
        -9.81432934416914548592e00,
    ),
    (
        1.0,
        1.96512716674392571292e01,
        1.37657754143519042600e02,
        4.34565877475229228821e02,
        6.45387271733267880336e02,
        4.29008140027567833386e02,
        1.08635005541779435134e02,
        6.57024977031928170135e00,
        -6.04244152148580987438e-02,
    ),
)
_FAR: Final = (
    (
        -9.86494292470009928597e-03,
        -7.99283237680523006574e-01,
        -1.77579549177547519889e01,
        -1.60636384855821916062e02,
        -6.37566443368389627722e02,
        -1.02509513161107724954e03,
        -4.83519191608651397019e02,
    ),
    (
        1.0,
        3.03380607434824582924e01,
        3.25792512996573918826e02,
        1.53672958608443695994e03,
        3.19985821950859553908e03,
        2.55305040643316442583e03,
        4.74528541206955367215e02,
        -2.24409524465858183362e01,
    ),
)
_ENDS: Final = (0.84375, 1.25, 1 / 0.35)  # of all intervals but the last


def _write_ratio_part(part: int) -> str:
    """Return a polynomial in z whose coefficients, one for each interval, are chosen."""
    pieces = [piece[part] for piece in (_NEAR_0, _NEAR_1, _MIDDLE, _FAR)]
    terms = max(map(len, pieces))
    rows = zip(*([*piece, *[0.0] * (terms - len(piece))] for piece in pieces), strict=True)
    chosen = [_choose_by_interval([f"{coefficient!r}" for coefficient in row]) for row in rows]
    result = chosen[-1]
    for coefficient in chosen[-2::-1]:
        result = f"{coefficient}\n    + z * ({result})"
    return result


def _choose_by_interval(values: list[str]) -> str:
    *others, chosen = values
    for end, value in zip(_ENDS[::-1], others[::-1], strict=True):
        chosen = f"size < {end!r} ? {value} : {chosen}"
    return f"({chosen})"


_DOUBLE: Final = f"""
INLINE A a_erf(A x) {{$fuse
  const A size = a_fabs(x) < 6.0 ? a_fabs(x) : 6.0;
  const A square = size * size;
  const A z = size < {_ENDS[0]!r} ? square : size < {_ENDS[1]!r} ? size - 1 : 1 / square;
  const A above = {_write_ratio_part(0)};
  const A below = {_write_ratio_part(1)};
  const A ratio = above / below;
  const A tail = 1 - a_exp(ratio - square - 0.5625) / size;
  const A far = size < {_ENDS[1]!r} ? {_AT_1!r} + ratio : tail;
  return size < {_ENDS[0]!r} ? x + x * ratio : x != x ? x : a_copysign(far, x);
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
