"""C functions that formulas may call, by kind of dtype.

They are written for the types ``A`` (the operands' as computed with) and ``R`` (the ring type, see
``ctypes.ring``), which ``define`` declares. The dialect writes those that an expression describes.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions
from tensorplug_loops.dialects import opencl_c
from tensorplug_loops.machine import Machine
from tensorplug_loops.schedule.lowering import Lowering
from tensorplug_loops.statements import variable
from tensorplug_opencl.codegen import ctypes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorplug.plugin import DType, Expression


# Under PoCL, OpenCL's functions are library calls, which prevent vectorization. clang, its
# compiler, has these as built-in functions.
_BUILT_IN: Final = """
#ifdef POCL_DEVICE_ADDRESS_BITS
#define a_{name} __builtin_{name}{suffix}
#else
#define a_{name} {name}
#endif"""
_SUFFIXES: Final = {"float": "f", "double": ""}
_POWER_BY_SQUARING: Final = """
INLINE R raised(R base, ulong exponent) {
  R result = 1;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}"""
_POWERS: Final = {
    "signed": _POWER_BY_SQUARING
    + """
INLINE A power(A a, A b) {
  if (b >= 0) return (A)raised((R)a, (ulong)b);
  return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
}""",
    "unsigned": _POWER_BY_SQUARING
    + "\nINLINE A power(A a, A b) { return (A)raised((R)a, (ulong)b); }",
}


def _logistic(x: Expression) -> Expression:
    small = expressions.function("exp", -abs(x))
    return expressions.where(x < 0.0, small, 1.0) / (1.0 + small)


# With the number of operands. ``wrapped``: a float as 64 bits, without those above.
_QUOTIENTS: Final[Mapping[str, tuple[int, Callable[..., Expression]]]] = {
    "floor_div": (2, functools.partial(expressions.apply, "floor_divide")),
    "floor_mod": (2, functools.partial(expressions.apply, "remainder")),
}
_OF_FLOATS: Final[Mapping[str, tuple[int, Callable[..., Expression]]]] = {
    "logistic": (1, _logistic),
    "wrapped": (1, lambda x: expressions.cast(x, dt.uint64)),
}


def define(expression: str, dtype: DType) -> str:
    """Return the types A and R for ``dtype``, and the functions that ``expression`` calls."""
    types = f"typedef {ctypes.computed(dtype)} A;\ntypedef {ctypes.ring(dtype)} R;"
    called = re.findall(r"\b\w+(?=\()", expression)
    known = _list_functions(dtype)
    return "\n".join([types, *(known[name] for name in dict.fromkeys(called) if name in known)])


@functools.cache
def _list_functions(dtype: DType) -> Mapping[str, str]:
    """Return the texts of all functions for a dtype, by name."""
    if dtype.kind == "bool":
        return {}
    rules = dict(_QUOTIENTS)
    if dtype.kind != "float":
        texts = {"power": _POWERS[dtype.kind]}
    else:
        rules |= _OF_FLOATS
        suffix = _SUFFIXES[ctypes.computed(dtype)]
        texts = {
            f"a_{name}": _BUILT_IN.format(name=name, suffix=suffix) for name in ("sqrt", "fabs")
        }
    return texts | {name: _render(name, *rule, dtype) for name, rule in rules.items()}


def _render(name: str, count: int, rule: Callable[..., Expression], dtype: DType) -> str:
    """Return the function of ``count`` operands that computes an expression."""
    operands = dict.fromkeys("ab"[:count], dtype.compute)
    root = rule(*(variable(each, own) for each, own in operands.items()))
    (lowered,) = Lowering(Machine()).lower([root])
    return opencl_c.write_function(name, lowered, operands)
