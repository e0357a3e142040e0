"""C functions of complex numbers that expressions may call.

They are written for the types ``A`` (a pair of real numbers) and ``E`` (one of them), which
``define`` declares. Infinities and NaN follow C99's annex G and the array API standard. Formulas
are Kahan's where branch cuts matter ("Branch Cuts for Complex Elementary Functions", 1987); errors
are a few ulp of the modulus.
"""

from __future__ import annotations

import re
from typing import Final

from tensorplug.plugin import DType
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import ctypes

# For each real type: the bound from which exp overflows; the number subtracted from the exponent
# there, and its exponential; powers of two whose squares neither overflow nor vanish, the second
# pair even where they meet the smallest number; where 1 + e**-2x is 1; and the layout of its bits.
_LIMITS: Final = {
    "float": {
        "EXP_END": "88.0f",
        "EXP_STEP": "64.0f",
        "EXP_OF_STEP": "6235149080811616882909238708.9f",
        "HUGE": "0x1p62f",
        "TINY": "0x1p-62f",
        "WIDE": "12.0f",
        "UP": "0x1p100f",
        "DOWN": "0x1p-100f",
        "BITS": "uint",
        "FRACTION": "23",
        "BIAS": "127u",
    },
    "double": {
        "EXP_END": "709.0",
        "EXP_STEP": "512.0",
        "EXP_OF_STEP": "2.2844135865397565e222",
        "HUGE": "0x1p510",
        "TINY": "0x1p-510",
        "WIDE": "24.0",
        "UP": "0x1p600",
        "DOWN": "0x1p-600",
        "BITS": "ulong",
        "FRACTION": "52",
        "BIAS": "1023ul",
    },
}
_TEXTS: Final = {
    "times": """
A times(A a, A b) { return (A)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }""",
    # Operands are scaled by powers of two, so that no product overflows or vanishes. Results that
    # become NaN because of an infinity or a zero are then corrected, as in C99, G.5.1.
    "over": """
BITS exponent(A z) {
  union { E number; BITS bits; } size = { .number = fmax(fabs(z.x), fabs(z.y)) };
  return clamp(size.bits >> FRACTION, (BITS)1, 2 * BIAS - 1);
}
E power_of_two(BITS biased) {
  union { BITS bits; E number; } power = { .bits = biased << FRACTION };
  return power.number;
}
A over(A a, A b) {
  const BITS of_a = exponent(a), of_b = exponent(b);
  A p = a * power_of_two(2 * BIAS - of_a), q = b * power_of_two(2 * BIAS - of_b);
  const E size = q.x * q.x + q.y * q.y;
  A z = (A)((p.x * q.x + p.y * q.y) / size, (p.y * q.x - p.x * q.y) / size);
  if (isnan(z.x) && isnan(z.y)) {
    if (size == 0) {
      const E infinite = copysign((E)INFINITY, b.x);
      return (A)(infinite * a.x, infinite * a.y);
    }
    if ((isinf(a.x) || isinf(a.y)) && isfinite(b.x) && isfinite(b.y)) {
      p = (A)(copysign((E)(isinf(a.x) ? 1 : 0), a.x), copysign((E)(isinf(a.y) ? 1 : 0), a.y));
      return (A)((p.x * b.x + p.y * b.y) * INFINITY, (p.y * b.x - p.x * b.y) * INFINITY);
    }
    if ((isinf(b.x) || isinf(b.y)) && isfinite(a.x) && isfinite(a.y)) {
      q = (A)(copysign((E)(isinf(b.x) ? 1 : 0), b.x), copysign((E)(isinf(b.y) ? 1 : 0), b.y));
      return (A)((a.x * q.x + a.y * q.y) * 0, (a.y * q.x - a.x * q.y) * 0);
    }
  }
  const BITS apart = 2 * BIAS + of_a - of_b, half_way = apart / 2;
  return z * power_of_two(half_way) * power_of_two(apart - half_way);
}""",
    # Infinite if either part is, NaN or not. OpenCL's hypot is exact, but a hundred times slower.
    "modulus": """
E modulus(A z) {
  const E size = fmax(fabs(z.x), fabs(z.y));
  const E by = size > HUGE ? DOWN : size < TINY ? UP : (E)1;
  const E back = size > HUGE ? UP : size < TINY ? DOWN : (E)1;
  z *= by;
  const E length = sqrt(z.x * z.x + z.y * z.y) * back;
  return isinf(size) ? (E)INFINITY : length;
}""",
    "exp_times": """
A exp_times(E x, A v) {
  if (x > EXP_END) {
    v *= EXP_OF_STEP;
    x -= EXP_STEP;
    if (x > EXP_END) return v * exp(x - EXP_STEP) * EXP_OF_STEP;
  }
  return v * exp(x);
}""",
    "c_exp": """
A c_exp(A z) {
  if (z.y == 0) return (A)(exp(z.x), z.y);
  if (!isfinite(z.y)) {
    if (isinf(z.x)) return z.x < 0 ? (A)(0, 0) : (A)(z.x, NAN);
    return (A)(NAN, NAN);
  }
  const A turn = (A)(cos(z.y), sin(z.y));
  if (isinf(z.x)) {
    const E size = z.x < 0 ? (E)0 : (E)INFINITY;
    return (A)(copysign(size, turn.x), copysign(size, turn.y));
  }
  return exp_times(z.x, turn);
}""",
    # cos y - 1 as a square, so that nothing cancels near 0.
    "c_expm1": """
A c_expm1(A z) {
  if (z.y == 0) return (A)(expm1(z.x), z.y);
  if (z.x == -INFINITY) return (A)(-1, isfinite(z.y) ? copysign((E)0, sin(z.y)) : 0);
  if (!(z.x < 40) || !isfinite(z.y)) return c_exp(z);
  const E half_sine = sin(z.y / 2);
  return (A)(expm1(z.x) * cos(z.y) - 2 * half_sine * half_sine, exp(z.x) * sin(z.y));
}""",
    "log_modulus": """
E log_modulus(A z) {
  const E large = fmax(fabs(z.x), fabs(z.y)), small = fmin(fabs(z.x), fabs(z.y));
  if (isinf(z.x) || isinf(z.y)) return INFINITY;
  if (isnan(z.x) || isnan(z.y)) return NAN;
  if (large > HUGE) return log(modulus(z * TINY)) - log(TINY);
  if (large < TINY) return log(modulus(z * HUGE)) - log(HUGE);
  if (large > (E)0.5 && large < 2) return log1p((large - 1) * (large + 1) + small * small) / 2;
  return log(modulus(z));
}""",
    "c_log": "\nA c_log(A z) { return (A)(log_modulus(z), atan2(z.y, z.x)); }",
    "c_log1p": """
A c_log1p(A z) {
  if (fmax(fabs(z.x), fabs(z.y)) > (E)0.5) return c_log((A)(1 + z.x, z.y));
  return (A)(log1p(z.x * (2 + z.x) + z.y * z.y) / 2, atan2(z.y, 1 + z.x));
}""",
    "c_sqrt": """
A c_sqrt(A z) {
  if (z.x == 0 && z.y == 0) return (A)(0, z.y);
  if (isinf(z.y)) return (A)(INFINITY, z.y);
  if (isnan(z.x)) return (A)(NAN, NAN);
  if (isinf(z.x)) {
    if (z.x > 0) return (A)(z.x, isnan(z.y) ? z.y : copysign((E)0, z.y));
    return (A)(isnan(z.y) ? z.y : (E)0, copysign((E)INFINITY, z.y));
  }
  if (isnan(z.y)) return (A)(NAN, NAN);
  const E large = fmax(fabs(z.x), fabs(z.y));
  const E factor = large > HUGE ? (E)0.25 : large < TINY ? HUGE : (E)1;
  z *= factor;
  const E one = sqrt((fabs(z.x) + modulus(z)) / 2);
  const A root = z.x >= 0 ? (A)(one, z.y / (2 * one))
                          : (A)(fabs(z.y) / (2 * one), copysign(one, z.y));
  return root * (large > HUGE ? (E)2 : large < TINY ? sqrt(TINY) : (E)1);
}""",
    "c_sinh": """
A c_sinh(A z) {
  if (z.y == 0) return (A)(sinh(z.x), z.y);
  if (!isfinite(z.y)) return (A)(z.x == 0 || isinf(z.x) ? z.x : (E)NAN, NAN);
  if (isnan(z.x)) return (A)(NAN, NAN);
  const E c = cos(z.y), s = sin(z.y);
  if (isinf(z.x)) return (A)(z.x * c, INFINITY * s);
  if (fabs(z.x) < WIDE) return (A)(sinh(z.x) * c, cosh(z.x) * s);
  return exp_times(fabs(z.x), (A)(copysign((E)0.5, z.x) * c, s / 2));
}""",
    "c_cosh": """
A c_cosh(A z) {
  if (z.y == 0) return (A)(cosh(z.x), isnan(z.x) ? z.y : z.y * copysign((E)1, z.x));
  if (!isfinite(z.y)) {
    if (z.x == 0) return (A)(NAN, 0);
    return (A)(isinf(z.x) ? (E)INFINITY : (E)NAN, NAN);
  }
  if (isnan(z.x)) return (A)(NAN, NAN);
  const E c = cos(z.y), s = sin(z.y);
  if (isinf(z.x)) return (A)(INFINITY * c, z.x * s);
  if (fabs(z.x) < WIDE) return (A)(cosh(z.x) * c, sinh(z.x) * s);
  return exp_times(fabs(z.x), (A)(c / 2, copysign((E)0.5, z.x) * s));
}""",
    "c_tanh": """
A c_tanh(A z) {
  if (isnan(z.x)) return (A)(NAN, z.y == 0 ? z.y : (E)NAN);
  if (isinf(z.x)) {
    return (A)(copysign((E)1, z.x), isfinite(z.y) ? copysign((E)0, sin(z.y) * cos(z.y)) : 0);
  }
  if (!isfinite(z.y)) return (A)(z.x == 0 ? z.x : (E)NAN, NAN);
  if (fabs(z.x) >= WIDE) {
    const E small = exp(-fabs(z.x));
    return (A)(copysign((E)1, z.x), 4 * sin(z.y) * cos(z.y) * small * small);
  }
  const E t = tan(z.y), s = sinh(z.x);
  const E slope = 1 + t * t, rho = sqrt(1 + s * s);
  if (isinf(slope)) return (A)(rho / s, 1 / t);
  const E below = 1 + slope * s * s;
  return (A)(slope * rho * s / below, t / below);
}""",
    "c_acos": """
A c_acos(A z) {
  if (isinf(z.x) || isinf(z.y)) {
    return (A)(isnan(z.y) ? (E)NAN : atan2(fabs(z.y), z.x), signbit(z.y) ? INFINITY : -INFINITY);
  }
  if (isnan(z.x) || isnan(z.y)) return (A)(z.x == 0 ? acos((E)0) : (E)NAN, NAN);
  if (fmax(fabs(z.x), fabs(z.y)) > HUGE) {
    return (A)(atan2(fabs(z.y), z.x), -copysign(log_modulus(z) + log((E)2), z.y));
  }
  const A below = c_sqrt((A)(1 - z.x, -z.y)), above = c_sqrt((A)(1 + z.x, z.y));
  return (A)(2 * atan2(below.x, above.x), asinh(above.x * below.y - above.y * below.x));
}""",
    "c_acosh": """
A c_acosh(A z) {
  if (!isfinite(z.x) || !isfinite(z.y)) {
    const A turned = c_acos(z);
    return (A)(fabs(turned.y), copysign(turned.x, z.y));
  }
  if (fmax(fabs(z.x), fabs(z.y)) > HUGE) {
    return (A)(log_modulus(z) + log((E)2), atan2(z.y, z.x));
  }
  const A below = c_sqrt((A)(z.x - 1, z.y)), above = c_sqrt((A)(z.x + 1, z.y));
  return (A)(asinh(below.x * above.x + below.y * above.y), 2 * atan2(below.y, above.x));
}""",
    "c_asinh": """
A c_asinh(A z) {
  if (isinf(z.x) || isinf(z.y)) {
    const E angle = isnan(z.x) || isnan(z.y) ? (E)NAN : atan2(z.y, fabs(z.x));
    return (A)(copysign((E)INFINITY, z.x), angle);
  }
  if (isnan(z.x) || isnan(z.y)) return (A)(NAN, z.y == 0 ? z.y : (E)NAN);
  if (fmax(fabs(z.x), fabs(z.y)) > HUGE) {
    return (A)(copysign(log_modulus(z) + log((E)2), z.x), atan2(z.y, fabs(z.x)));
  }
  const A above = c_sqrt((A)(1 + z.y, -z.x)), below = c_sqrt((A)(1 - z.y, z.x));
  return (A)(asinh(above.x * below.y - below.x * above.y),
             atan2(z.y, above.x * below.x - above.y * below.y));
}""",
    "c_atanh": """
A c_atanh(A z) {
  const E quarter_turn = copysign(acos((E)0), z.y);
  if (isinf(z.y)) return (A)(copysign((E)0, z.x), quarter_turn);
  if (isinf(z.x)) return (A)(copysign((E)0, z.x), isnan(z.y) ? z.y : quarter_turn);
  if (isnan(z.x) || isnan(z.y)) return (A)(z.x == 0 ? z.x : (E)NAN, NAN);
  const E x = fabs(z.x), y = fabs(z.y);
  const E large = fmax(x, y);
  if (large > HUGE) return (A)(copysign(x / large / large, z.x), quarter_turn);
  if (x == 1 && y < TINY) {
    if (y == 0) return (A)(copysign((E)INFINITY, z.x), z.y);
    return (A)(copysign((log((E)2) - log(y)) / 2, z.x), copysign(atan2((E)2, -y) / 2, z.y));
  }
  const E distance = (1 - x) * (1 - x) + y * y;
  return (A)(copysign(log1p(4 * x / distance) / 4, z.x),
             copysign(atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2, z.y));
}""",
    # Functions of i z by those of z: f(z) = -i g(i z).
    "c_sin": "\nA c_sin(A z) { const A w = c_sinh((A)(-z.y, z.x)); return (A)(w.y, -w.x); }",
    "c_cos": "\nA c_cos(A z) { return c_cosh((A)(-z.y, z.x)); }",
    "c_tan": "\nA c_tan(A z) { const A w = c_tanh((A)(-z.y, z.x)); return (A)(w.y, -w.x); }",
    "c_asin": "\nA c_asin(A z) { const A w = c_asinh((A)(-z.y, z.x)); return (A)(w.y, -w.x); }",
    "c_atan": "\nA c_atan(A z) { const A w = c_atanh((A)(-z.y, z.x)); return (A)(w.y, -w.x); }",
    # Small integer powers are products, which are more exact than logarithms.
    "c_pow": """
A c_pow(A a, A b) {
  if (b.x == 0 && b.y == 0) return (A)(1, 0);
  if (a.x == 0 && a.y == 0) return b.x > 0 ? (A)(0, 0) : (A)(NAN, NAN);
  if (b.y == 0 && b.x == trunc(b.x) && fabs(b.x) < 100) {
    uint left = (uint)fabs(b.x);
    A base = a;
    for (; !(left & 1); left >>= 1) base = times(base, base);
    A power = base;  // not 1 times it, which may turn a negative zero
    while (left >>= 1) {
      base = times(base, base);
      if (left & 1) power = times(power, base);
    }
    return b.x < 0 ? over((A)(1, 0), power) : power;
  }
  return c_exp(times(b, c_log(a)));
}""",
    "c_sign": """
A c_sign(A z) {
  if (isinf(z.x) || isinf(z.y)) {
    if (isinf(z.x) && isinf(z.y)) return (A)(NAN, NAN);
    if (isnan(z.x) || isnan(z.y)) return (A)(NAN, NAN);
    return isinf(z.x) ? (A)(copysign((E)1, z.x), 0) : (A)(0, copysign((E)1, z.y));
  }
  const E size = fmax(fabs(z.x), fabs(z.y));
  if (size == 0 && !isnan(z.x) && !isnan(z.y)) return (A)(0, 0);
  z = (A)(z.x / size, z.y / size);
  return z / modulus(z);
}""",
}
_CALLED: Final = {
    name: set(re.findall(r"\b\w+(?=\()", text)) & _TEXTS.keys() - {name}
    for name, text in _TEXTS.items()
}


def pair_type(dtype: DType) -> str:
    """Return the type of an element of complex ``dtype``: x is the real part, y the other."""
    return f"{ctypes.stored(dt.real_part(dtype))}2"


def define(expression: str, dtype: DType) -> str:
    """Return the types A and E for complex ``dtype``, and the functions ``expression`` calls."""
    real = ctypes.stored(dt.real_part(dtype))
    used: set[str] = set()
    called = set(re.findall(r"\b\w+(?=\()", expression)) & _TEXTS.keys()
    while called:
        used |= called
        called = set().union(*(_CALLED[name] for name in called)) - used
    limits = [f"#undef {name}\n#define {name} {value}" for name, value in _LIMITS[real].items()]
    texts = [text for name, text in _TEXTS.items() if name in used]
    return "\n".join([f"typedef {real}2 A;\ntypedef {real} E;", *limits, *texts])
