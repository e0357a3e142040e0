"""C functions that expressions may call, by kind of dtype.

They are written for the types ``A`` (the operands' as computed with) and ``R`` (the ring type, see
``ctypes.ring``), which ``define`` declares. ``elementary`` has the most important ones. The others
call OpenCL's functions, whose error bounds (full profile: sin, cos 4 ulp) hold on every conforming
device.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final

from tensorplug_opencl.kernels import ctypes, elementary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorplug.plugin import DType

__all__ = ["define"]

# floor(a / b) and its remainder, through the exact fmod: a / b alone may round up to the next
# integer.
_FLOAT: Final = {
    "floor_div": """
INLINE A floor_div(A a, A b) { return isinf(a) ? a / b : a_quotient(a, b, fmod(a, b)); }""",
    "floor_mod": """
INLINE A floor_mod(A a, A b) { return a_rest(b, fmod(a, b)); }""",
    "a_quotient": """
INLINE A a_quotient(A a, A b, A rest) {
  const A above = (a - rest) / b;
  const A quotient = rest != 0 && (b < 0) != (rest < 0) ? above - 1 : above;
  const A down = a_floor(quotient);
  const A whole = quotient - down > (A)0.5 ? down + 1 : down;
  return b == 0 ? a / b : quotient == 0 ? a_copysign((A)0, a / b) : whole;
}""",
    "a_rest": """
INLINE A a_rest(A b, A rest) {
  const A turned = (b < 0) != (rest < 0) ? rest + b : rest;
  return rest == 0 ? a_copysign((A)0, b) : turned;
}""",
    # fmod where the quotient is so small that it is off by 1 at most: all steps are exact.
    "a_near_mod": """
INLINE A a_near_mod(A a, A b) {
  const A size = a_fabs(b);
  const A rest = a_fma(-a_trunc(a / b), b, a);
  const A high = a_fabs(rest) >= size ? rest - a_copysign(size, rest) : rest;
  return high != 0 && (high < 0) != (a < 0) ? high + a_copysign(size, a) : high;
}""",
    "a_far_apart": """
INLINE int a_far_apart(A a, A b) {
  const A size = a_fabs(b);
  return !(a_fabs(a) < size * (A)1048576.0 && size < INFINITY);
}""",
    # Float to integer, wrapped to 64 bits: C defines the conversion only for what fits, and
    # the bits above the 64th are dropped exactly by fmod.
    "wrapped": """
INLINE ulong wrapped(A x) {
  if (!isfinite(x)) return 0;
  const A size = fabs(trunc(x));
  const ulong bits = (ulong)(size < (A)18446744073709551616.0 ? size
                             : fmod(size, (A)18446744073709551616.0));
  return x < 0 ? 0 - bits : bits;
}""",
}
_POWER_BY_SQUARING: Final = """
INLINE R raised(R base, ulong exponent) {
  R result = 1;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}"""
# Division by 0 gives 0, and the most negative integer divided by -1 wraps: both trap on CPUs.
_SIGNED: Final = {
    "floor_div": """
INLINE A floor_div(A a, A b) {
  if (b == 0) return 0;
  if (b == -1) return (A)(0 - (R)a);
  const A quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}""",
    "floor_mod": """
INLINE A floor_mod(A a, A b) {
  if (b == 0 || b == -1) return 0;
  const A rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}""",
    "power": _POWER_BY_SQUARING
    + """
INLINE A power(A a, A b) {
  if (b >= 0) return (A)raised((R)a, (ulong)b);
  return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
}""",
}
_UNSIGNED: Final = {
    "floor_div": "INLINE A floor_div(A a, A b) { return b == 0 ? 0 : a / b; }",
    "floor_mod": "INLINE A floor_mod(A a, A b) { return b == 0 ? 0 : a % b; }",
    "power": _POWER_BY_SQUARING
    + "\nINLINE A power(A a, A b) { return (A)raised((R)a, (ulong)b); }",
}
_FUNCTIONS: Final[dict[str, dict[str, str]]] = {
    "float": _FLOAT,
    "signed": _SIGNED,
    "unsigned": _UNSIGNED,
    "bool": {},
}


def define(expression: str, dtype: DType) -> str:
    """Return the types A and R for ``dtype``, and the functions that ``expression`` calls."""
    types = f"typedef {ctypes.computed(dtype)} A;\ntypedef {ctypes.ring(dtype)} R;"
    return "\n".join([types, *_find_called(expression, dtype).values()])


@functools.cache
def _list_functions(kind: str, ctype: str) -> Mapping[str, str]:
    return {**_FUNCTIONS[kind], **elementary.FUNCTIONS.get(ctype, {})}


def _find_called(expression: str, dtype: DType) -> dict[str, str]:
    """Return the functions that ``expression`` calls, each after those that it calls itself."""
    known = dict(_list_functions(dtype.kind, ctypes.computed(dtype)))
    texts: dict[str, str] = {}

    def add_called(text: str) -> None:
        for name in re.findall(r"\b\w+(?=\()", text):
            if name in known and name not in texts:
                own = known.pop(name)
                add_called(own)
                texts[name] = own

    add_called(expression)
    return texts
