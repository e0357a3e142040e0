"""Elementary functions in C, in a form that compilers vectorize.

A CPU driver calls its own functions for one number at a time, which is ten times slower. So these
have no branches (they compute both sides and choose one), no tables, and only integers of the
numbers' size. Names begin with ``a_``; they are written for the type ``A`` that
``functions.define`` declares.

After multiples of log(2) or powers of 2 are removed, the rest of an argument is so small that
Taylor's series is enough: of e**r for |r| <= log(2) / 2, and of
2 atanh(s) = log((1 + s) / (1 - s)) for (1 + s) / (1 - s) between the roots of 1/2 and of 2.
"""

from __future__ import annotations

import re
from math import factorial
from string import Template
from typing import Final, NamedTuple

from tensorplug_opencl.kernels import angles, circular, error_function, exponentiation

__all__ = ["FUNCTIONS"]


class _Real(NamedTuple):
    """The functions' constants for a type."""

    signed: str  # the integer types of its size
    unsigned: str
    suffix: str  # of clang's built-in functions
    fraction: int  # bits of the significand behind the point
    bias: int  # of the exponent
    high: str  # log(2) in two parts, of which the first has so few bits that its product with
    low: str  # an exponent is exact
    lowest: int  # exp of less is 0, of more than ``highest`` infinite
    highest: int
    lost: int  # 1 + e**-lost is 1
    powers: int  # the last power of Taylor's series of exp, and number of terms of atanh's
    terms: int


_REALS: Final = {
    "float": _Real(
        *("int", "uint", "f", 23, 127),
        *("0.693359375", "-2.12194440054690582767e-4"),
        *(-104, 89, 20, 7, 5),
    ),
    "double": _Real(
        *("long", "ulong", "", 52, 1023),
        *("6.93147180369123816490e-01", "1.90821492927058770002e-10"),
        *(-746, 710, 40, 13, 10),
    ),
}

# Contraction into fused multiply-adds, which programs forbid, does no harm in polynomials.
_FUSE: Final = "\n#pragma OPENCL FP_CONTRACT ON"

# Under PoCL, OpenCL's functions are library calls, which prevent vectorization. clang, its
# compiler, has these as built-in functions.
_BUILT_IN: Final = """
#ifdef POCL_DEVICE_ADDRESS_BITS
#define a_$name $instruction
#else
#define a_$name $function
#endif"""
_INSTRUCTIONS: Final = ("fabs", "floor", "ceil", "trunc", "rint", "sqrt", "copysign", "fma")

_TEXTS: Final = {
    "a_bits": "\n#define a_bits(x) as_$signed(x)",
    "a_number": "\n#define a_number(bits) as_$ctype(($unsigned)(bits))",
    "a_rsqrt": """
#ifdef POCL_DEVICE_ADDRESS_BITS
#define a_rsqrt(x) (1 / a_sqrt(x))
#else
#define a_rsqrt(x) rsqrt(x)
#endif""",
    # The nearest integer, which can also be read from the last bits of the sum.
    "a_whole": "\n#define a_whole(x) ((x) + (A)$rounder)",
    "a_power_of_2": """
#define a_power_of_2(whole) \\
  a_number((a_bits(whole) - a_bits((A)$rounder) + $bias) << $fraction)""",
    # e**r - 1, where r is what remains of x without `whole` times log(2).
    "a_exp_rest": """
INLINE A a_exp_rest(A x, A whole) {$fuse
  const A k = whole - (A)$rounder;
  const A r = (x - k * (A)$high) - k * (A)$low;
  return r + r * r * ($exp_series);
}""",
    # The power of 2 in two steps; only the last one can overflow or underflow.
    "a_exp": """
INLINE A a_exp(A x) {
  const A cut = x > $lowest ? x < $highest ? x : $highest : $lowest;
  const A whole = a_whole(cut * (A)$log_2_e);
  const A half_of_it = a_whole((whole - (A)$rounder) * (A)0.5);
  const A rest = whole - (half_of_it - (A)$rounder);
  const A power = 1 + a_exp_rest(cut, whole);
  return x != x ? x : power * a_power_of_2(half_of_it) * a_power_of_2(rest);
}""",
    # For x <= 0 or not much above: 2**k (e**r - 1) + (2**k - 1).
    "a_expm1_low": """
INLINE A a_expm1_low(A x) {$fuse
  const A cut = x > -$lost ? x : -$lost;
  const A whole = a_whole(cut * (A)$log_2_e);
  const A power = a_power_of_2(whole);
  const A result = power * a_exp_rest(cut, whole) + (power - 1);
  return x == 0 || x != x ? x : result;
}""",
    "a_expm1": """
INLINE A a_expm1(A x) {
  const A low = a_expm1_low(x);
  const A high = a_exp(x) - 1;
  return x < $lost ? low : high;
}""",
    # u = 2**k m, for normal u: k, and m between the roots of 1/2 and of 2.
    "a_exponent_bits": """
#define a_exponent_bits(u) (as_$unsigned(u) - as_$unsigned((A)$root) + as_$unsigned((A)1))""",
    "a_exponent": """
#define a_exponent(u) (a_number(a_exponent_bits(u) >> $fraction | as_$unsigned((A)$two_to)) \\
  - ((A)$two_to + $bias))""",
    "a_fraction": """
#define a_fraction(u) a_number((a_exponent_bits(u) & $mask) + as_$unsigned((A)$root))""",
    # log(m) + k log(2) + little
    "a_log_sum": """
INLINE A a_log_sum(A m, A k, A little) {$fuse
  const A f = m - 1;
  const A s = f / (2 + f);
  const A z = s * s;
  const A series = z * ($log_series);
  const A half_square = (A)0.5 * f * f;
  const A last = s * (half_square + series) + (k * (A)$low + little);
  return k * (A)$high - ((half_square - last) - f);
}""",
    "a_log": """
INLINE A a_log(A x) {
  const bool subnormal = x < (A)$normal;
  const A up = subnormal ? x * (A)$two_to : x;
  const A k = a_exponent(up) - (subnormal ? $fraction : 0);
  const A result = a_log_sum(a_fraction(up), k, 0);
  return x > 0 ? x < INFINITY ? result : x : x == 0 ? -INFINITY : NAN;
}""",
    # The rounding error of 1 + x is added, divided by 1 + x.
    "a_log1p": """
INLINE A a_log1p(A x) {
  const A u = 1 + x;
  const A off = x < 1 ? x - (u - 1) : 1 - (u - x);
  const A result = x == 0 ? x : a_log_sum(a_fraction(u), a_exponent(u), off / u);
  return x > -1 ? x < INFINITY ? result : x : x == -1 ? -INFINITY : NAN;
}""",
    "a_tanh": """
INLINE A a_tanh(A x) {
  const A below = a_expm1_low(-2 * a_fabs(x));
  return a_copysign(below / (below + 2), x);
}""",
    # The exponent is added separately, so that logarithms of powers of 2 are exact.
    "a_log2": """
INLINE A a_log2(A x) {
  const bool subnormal = x < (A)$normal;
  const A up = subnormal ? x * (A)$two_to : x;
  const A k = a_exponent(up) - (subnormal ? $fraction : 0);
  const A result = k + a_log_sum(a_fraction(up), 0, 0) * (A)$log_2_e;
  return x > 0 ? x < INFINITY ? result : x : x == 0 ? -INFINITY : NAN;
}""",
    "a_log10": """
INLINE A a_log10(A x) { return a_log(x) * (A)0.43429448190325182765; }""",
    "a_log_add_exp": """
INLINE A a_log_add_exp(A a, A b) {
  const A more = a >= b || a != a ? a : b;
  const A result = more + a_log1p(a_exp(-a_fabs(a - b)));
  return a == b ? a + (A)0.69314718055994530942 : result;  // equal infinities too
}""",
    # By the ratio of the two, at most 1.
    "a_hypot": """
INLINE A a_hypot(A a, A b) {
  const A x = a_fabs(a), y = a_fabs(b);
  const A more = x > y || x != x ? x : y, less = x > y || x != x ? y : x;
  const A ratio = less / more;
  const A result = more == 0 ? more : more * a_sqrt(1 + ratio * ratio);
  return x == INFINITY || y == INFINITY ? INFINITY : result;
}""",
    "a_sinh": """
INLINE A a_sinh(A x) {
  const A size = a_fabs(x);
  const A more = a_expm1_low(size < $lost ? size : $lost);
  const A root = a_exp((A)0.5 * size);
  const A result = size < $lost ? (A)0.5 * (more + more / (more + 1)) : (A)0.5 * root * root;
  return a_copysign(result, x);
}""",
    "a_cosh": """
INLINE A a_cosh(A x) {
  const A root = a_exp((A)0.5 * a_fabs(x));  // the power may overflow where its half does not
  const A half_power = (A)0.5 * root * root;
  return half_power + (A)0.25 / half_power;
}""",
    "a_asinh": """
INLINE A a_asinh(A x) {
  const A size = a_fabs(x);
  const A cut = size < (A)$large ? size : (A)$large;
  const A near = a_log1p(cut + cut * cut / (1 + a_sqrt(1 + cut * cut)));
  const A far = a_log(size) + (A)0.69314718055994530942;
  return a_copysign(size < (A)$large ? near : far, x);
}""",
    "a_acosh": """
INLINE A a_acosh(A x) {
  const A above = x - 1;
  const A near = a_log1p(above + a_sqrt(above) * a_sqrt(above + 2));
  const A far = a_log(x) + (A)0.69314718055994530942;
  return x < (A)$large ? near : far;
}""",
    "a_atanh": """
INLINE A a_atanh(A x) {
  const A size = a_fabs(x);
  return a_copysign((A)0.5 * a_log1p(2 * size / (1 - size)), x);
}""",
    "scaled_elu": """
INLINE A scaled_elu(A x, A above, A below) {
  const A low = below * a_expm1_low(x < 0 ? x : 0);
  return x > 0 ? above * x : x == x ? low : x;
}""",
    "logistic": """
INLINE A logistic(A x) {
  const A small = a_exp(-a_fabs(x));
  return (x < 0 ? small : 1) / (1 + small);
}""",
}
_LITERAL: Final = re.compile(r"\(A\)(-?\d\w*\.[\w+-]*)")


def _write_series(coefficients: list[str], variable: str) -> str:
    """Return a polynomial by Horner's rule; coefficients begin with the constant."""
    result = f"(A){coefficients[-1]}"
    for coefficient in coefficients[-2::-1]:
        result = f"(A){coefficient} + {variable} * ({result})"
    return result


def _write_functions(ctype: str, real: _Real) -> dict[str, str]:
    smallest = 1 - real.bias
    numbers = {
        **real._asdict(),
        "ctype": ctype,
        "fuse": _FUSE,
        "log_2_e": "1.44269504088896340736",
        "large": f"{2**30}.0",  # adding 1 to its square changes nothing
        "rounder": f"{3 * 2 ** (real.fraction - 1)}.0",
        "root": "0.70710678118654752440",
        "two_to": f"{2**real.fraction}.0",
        "mask": f"((({real.unsigned})1 << {real.fraction}) - 1)",
        "normal": float(2.0**smallest).hex(),
        "exp_series": _write_series(
            [f"{1 / factorial(n)!r}" for n in range(2, real.powers + 1)], "r"
        ),
        "log_series": _write_series(
            [f"{2 / (2 * n + 1)!r}" for n in range(1, real.terms + 1)], "z"
        ),
    }
    for module in (circular, angles, exponentiation):
        parts = module.parts(ctype)
        assert not numbers.keys() & parts.keys(), "two families use one name for different numbers"
        numbers.update(parts)
        for name, coefficients in module.series(ctype).items():
            numbers[name] = _write_series([repr(coefficient) for coefficient in coefficients], "z")
    families = (_TEXTS, circular.TEXTS, angles.TEXTS, exponentiation.TEXTS)
    texts = {name: text for family in families for name, text in family.items()}
    texts["a_erf"] = error_function.TEXTS[ctype]
    result = {name: Template(text).substitute(numbers) for name, text in texts.items()}
    if ctype == "float":  # not every device has double literals
        result = {name: _LITERAL.sub(r"\1f", text) for name, text in result.items()}
    for name in _INSTRUCTIONS:
        instruction = f"__builtin_{name}{real.suffix}"
        result[f"a_{name}"] = Template(_BUILT_IN).substitute(
            name=name, instruction=instruction, function=name
        )
    return result


FUNCTIONS: Final[dict[str, dict[str, str]]] = {
    ctype: _write_functions(ctype, real) for ctype, real in _REALS.items()
}
"""C text by name of the function, by C type of the numbers."""
