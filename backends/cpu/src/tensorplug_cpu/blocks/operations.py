"""What NumPy does for each operation of a scalar expression, on arrays that broadcast.

A *body* fills its first argument from the others. It is a ufunc, or a function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import narrowing
from tensorplug_cpu.numerics import casting, special_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import DType, Expression
    from tensorplug_cpu.arrays import Array


class Body(NamedTuple):
    """What fills a result.

    ``in_place``: whether the result may be in the memory of an operand of its dtype and shape.
    ``slow_numbers``: whether an operand that is one number should be repeated.
    """

    function: Any
    in_place: bool = True
    slow_numbers: bool = False


_UFUNCS: Final[dict[str, np.ufunc]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.true_divide,
    "remainder": np.remainder,
    "negative": np.negative,
    "abs": np.absolute,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "sqrt": np.sqrt,
    "copysign": np.copysign,
    "equal": np.equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_not": np.logical_not,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.invert,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
    **{name: getattr(np, name) for name in ("exp", "expm1", "log", "log1p", "log2", "log10")},
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("asin", "acos", "atan")},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("asinh", "acosh", "atanh", "atan2")},
}

_MOVING: Final = frozenset({"cast", "bitcast", "where"})

# NumPy takes several times as long with a number as with an array.
_SLOW_WITH_NUMBERS: Final = frozenset({"maximum", "minimum", "atan2"})


ADD: Final = Body(np.add)
MULTIPLY: Final = Body(np.multiply)


def run(function: Any, result: Array, operands: Sequence[Array]) -> None:
    """Call a body's function."""
    if function.__class__ is np.ufunc:
        function(*operands, out=result)
    else:
        function(result, *operands)


def body_of(expression: Expression) -> Body | None:
    """Return what computes an operation, None if NumPy does not."""
    op, dtype = expression.op, expression.dtype
    if op not in _MOVING and any(
        node.dtype in dt.WIDENED for node in (expression, *expression.operands)
    ):
        return None  # the core widens these; ml_dtypes' loops are slow
    if op in _UFUNCS:
        return Body(_UFUNCS[op], slow_numbers=op in _SLOW_WITH_NUMBERS)
    if op == "floor_divide":
        if dtype in dt.INTEGER:
            return Body(np.floor_divide)
        return Body(_floor_divide, in_place=False)
    if op == "where":
        if dtype.itemsize > _WIDEST_BITS:
            return Body(_where_by_copies, in_place=False)
        return Body(_where_by_bits(dtype), in_place=False)
    if op == "cast":
        return Body(_cast(expression.operands[0].dtype, dtype), in_place=False)
    if op == "bitcast":
        return Body(_bitcast, in_place=False)
    return _FUNCTIONS.get(op)


def constant(expression: Expression) -> Array:
    """Return the number as an array of rank 0."""
    with np.errstate(all="ignore"):  # too large a float is infinite
        return narrowing.convert(np.array(expression.value), expression.dtype)


def _floor_divide(result: Array, a: Array, b: Array) -> None:
    np.floor_divide(a, b, out=result)
    # NumPy makes NaN of an infinite dividend; in the array API the quotient is infinite.
    infinite = np.isinf(a)
    if infinite.any():
        np.true_divide(a, b, out=result, where=infinite)


_WIDEST_BITS: Final = 8  # bytes of the widest integer


def _where_by_bits(dtype: DType) -> Callable[..., None]:
    """Return a function that chooses by arithmetic on bits.

    NumPy's own loop branches, which takes ten times as long where the condition is random.
    """
    whole = np.dtype(f"i{dtype.itemsize}")

    def choose(result: Array, condition: Array, t: Array, e: Array) -> None:
        bits, ours, others = result.view(whole), t.view(whole), e.view(whole)
        if not others.ndim and not others:  # the most common case
            np.multiply(ours, condition, out=bits)
            return
        np.bitwise_xor(ours, others, out=bits)
        np.multiply(bits, condition, out=bits)
        np.bitwise_xor(bits, others, out=bits)

    return choose


def _where_by_copies(result: Array, condition: Array, t: Array, e: Array) -> None:
    np.copyto(result, e)
    np.copyto(result, t, where=condition)


def _cast(source: DType, target: DType) -> Callable[..., None]:
    if casting.plain(source, target):
        return casting.copied
    convert = casting.converter(source, target)

    def converted(result: Array, x: Array) -> None:
        result[...] = convert(x)

    return converted


def _bitcast(result: Array, x: Array) -> None:
    np.copyto(result.view(x.dtype), x)


def _power(result: Array, a: Array, b: Array) -> None:
    if not b.ndim and b == 2:  # squaring is 20 times as fast, and exact
        np.square(a, out=result)
    else:
        np.power(a, b, out=result)


def _erf(result: Array, x: Array) -> None:
    result[...] = special_functions.erf(x)


# Not erfc: NumPy has none, and kernels that need it have formulas of their own, 30 times as fast.
_FUNCTIONS: Final[dict[str, Body]] = {
    "pow": Body(_power),
    "erf": Body(_erf),
}
