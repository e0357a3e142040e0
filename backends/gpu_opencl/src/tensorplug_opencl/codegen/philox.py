"""C functions for random numbers: Philox4x32-10, and variates from its words.

``box_muller`` in ``tensorplug.plugin`` defines the steps. The C code computes them in a type ``T``
(float or double), in the order that every backend follows. Every program turns contraction off, so
that steps are not fused.
"""

from __future__ import annotations

from typing import Final

from tensorplug.algorithms import box_muller, philox
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import ctypes

# Products of 64 bits: GPUs have an instruction for both halves of a product of two words, and PoCL
# takes four times as long with mul_hi.
PHILOX: Final = f"""
uint4 philox(ulong block, uint4 key) {{
  uint a = (uint)block, b = (uint)(block >> 32), c = key.z, d = key.w, one = key.x, two = key.y;
  for (int number = 0; number < {philox.ROUNDS}; number++) {{
    const ulong p = (ulong)a * {philox.MULTIPLIERS[0]}u, q = (ulong)c * {philox.MULTIPLIERS[1]}u;
    a = (uint)(q >> 32) ^ b ^ one;
    b = (uint)q;
    c = (uint)(p >> 32) ^ d ^ two;
    d = (uint)p;
    one += {philox.STEPS[0]}u;
    two += {philox.STEPS[1]}u;
  }}
  return (uint4)(a, b, c, d);
}}"""

# A pair represents a number as the sum of x and y; y is the rounding error of x.
_PAIRS: Final = """
T2 sum_of(T a, T b) { const T total = a + b; return (T2)(total, b - (total - a)); }
T2 halves_of(T x) {
  const T big = x * SPLITTER;
  const T high = big - (big - x);
  return (T2)(high, x - high);
}
T product_of(T2 a, T2 b) { return a.x * b.x + (a.x * b.y + a.y * b.x); }"""

_MINUS_LOG: Final = """
T2 minus_log(W drawn) {
  T e, f, rest;
  near_1(drawn, &e, &f, &rest);
  const T2 half_f = halves_of(f);
  const T high = half_f.x, low = half_f.y + rest;
  const T curved = low * (high + low * HALF) - f * f * f * LOGARITHM(f);
  const T2 one = sum_of(-high, high * high * HALF);
  const T2 two = sum_of(one.x, -low);
  const T2 three = sum_of(e * LN2_FIRST, two.x);
  const T small = ((one.y + two.y) + three.y) + (curved + e * LN2_SECOND);
  return sum_of(three.x, small);
}"""

_NORMALS: Final = """
T2 root_of(T2 minus_log) {
  const T twice = minus_log.x + minus_log.x, rest = minus_log.y + minus_log.y;
  const T root = sqrt(twice);
  const T2 half_root = halves_of(root);
  const T square = root * root;
  const T high = half_root.x, low = half_root.y;
  const T error = ((high * high - square) + high * low * 2) + low * low;
  return (T2)(root, (((twice - square) - error) + rest) / (root + root));
}
void octant(W drawn, T2 *cosine, T2 *sine) {
  T part, left;
  angle_of(drawn, &part, &left);
  const T2 half_part = halves_of(part);
  const T low = half_part.y + left;
  const T2 turned = sum_of(half_part.x * QUARTER_PI_FIRST,
                           low * QUARTER_PI_FIRST + part * QUARTER_PI_SECOND);
  const T angle = turned.x, z = angle * angle;
  *sine = sum_of(angle, turned.y + angle * z * SINE(z));
  const T2 half_angle = halves_of(angle);
  const T rest = half_angle.y + turned.y;
  const T2 flat = sum_of(1, -(half_angle.x * half_angle.x * HALF));
  const T bent = flat.y - rest * (half_angle.x + rest * HALF);
  *cosine = sum_of(flat.x, bent + z * z * COSINE(z));
}
T2 normals(W radius, W angle) {
  T2 cosine, sine;
  octant(angle, &cosine, &sine);
  const T2 root = root_of(minus_log(radius));
  const T one = product_of(root, cosine), two = product_of(root, sine);
  const uint top = (uint)(angle >> (WIDTH - 3));
  const T first = top & 4 ? two : one, second = top & 4 ? one : two;
  return (T2)(top & 2 ? -first : first, top & 1 ? -second : second);
}"""

# Converts the integers to numbers: m / 2**32 = (1 + f + rest) / 2**e, and the angle's part of an
# octant. In float, an integer is the sum of the nearest float and a rest.
_FROM_WORDS: Final = {
    dt.float32: """
typedef uint W;
void parted(uint m, T unit, T *nearest, T *rest) {
  const T value = convert_float_rte(m);
  *nearest = value * unit;
  *rest = convert_float((int)(m - convert_uint(value))) * unit;
}
void near_1(W drawn, T *e, T *f, T *rest) {
  const int shift = clz(drawn | 1);
  const uint m = (drawn | 1) << shift;
  const int below = m < LOW;
  parted(below ? m << 1 : 0 - m, below ? UNIT : -UNIT, f, rest);
  *e = shift + below;
}
void angle_of(W drawn, T *part, T *rest) {
  parted((drawn & 0x1FFFFFFF) | 1, OCTANT_UNIT, part, rest);
}""",
    dt.float64: """
typedef ulong W;
void near_1(W drawn, T *e, T *f, T *rest) {
  const ulong odd = drawn >> 11 | 1;
  const int shift = clz(odd) - 11;
  const ulong m = odd << shift;
  const int below = m < LOW;
  *f = convert_double(below ? m << 1 : m) * UNIT - 1;
  *e = shift + below;
  *rest = 0;
}
void angle_of(W drawn, T *part, T *rest) {
  *part = convert_double((drawn << 3) >> 14 | 1) * OCTANT_UNIT;
  *rest = 0;
}""",
}


def write_literal(value: float, precision: box_muller.Precision) -> str:
    """Return a C constant of exactly this value."""
    return f"({value.hex()}{'' if precision.dtype is dt.float64 else 'f'})"


def _define_polynomial(
    name: str, coefficients: tuple[float, ...], precision: box_muller.Precision
) -> str:
    """Return the macro ``name(x)``, by Horner's scheme."""
    text = write_literal(coefficients[-1], precision)
    for coefficient in reversed(coefficients[:-1]):
        text = f"({text} * (x) + {write_literal(coefficient, precision)})"
    return f"#define {name}(x) {text}"


def define_variates(precision: box_muller.Precision) -> str:
    """Return the functions ``minus_log`` and ``normals`` of words ``W``, in the type ``T``."""
    ctype = ctypes.stored(precision.dtype)
    width = 8 * precision.dtype.itemsize
    constants = {
        "SPLITTER": precision.splitter,
        "HALF": 0.5,
        "LN2_FIRST": precision.ln2[0],
        "LN2_SECOND": precision.ln2[1],
        "QUARTER_PI_FIRST": precision.quarter_pi[0],
        "QUARTER_PI_SECOND": precision.quarter_pi[1],
        "UNIT": 2.0**-precision.bits,
        "OCTANT_UNIT": 2.0**-precision.octant_bits,
    }
    return "\n".join(
        [
            f"typedef {ctype} T;\ntypedef {ctype}2 T2;\n#define WIDTH {width}",
            f"#define LOW {int(box_muller.LOW * 2**precision.bits)}{'ul' if width == 64 else 'u'}",
            *(
                f"#define {name} {write_literal(constant, precision)}"
                for name, constant in constants.items()
            ),
            _define_polynomial("LOGARITHM", precision.logarithm, precision),
            _define_polynomial("SINE", precision.sine, precision),
            _define_polynomial("COSINE", precision.cosine, precision),
            _FROM_WORDS[precision.dtype],
            _PAIRS,
            _MINUS_LOG,
            _NORMALS,
        ]
    )
