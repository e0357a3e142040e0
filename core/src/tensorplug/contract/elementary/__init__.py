"""The elementary functions by arithmetic, for renderers that lack accurate ones of their own.

``expand`` writes a function of ``expressions.FUNCTIONS``, and ``spell_out`` those in whole
expressions, as operations that every processor does to several numbers at a time: no branches are
needed (both sides are computed, and one is chosen), no tables, and only integers of the numbers'
size. ``BOUNDS`` says how accurate the results are. They hold whether or not an ``fma`` rounds its
product; the other operations must be rounded one by one, as their dtype says, and subnormal
numbers must not be flushed to 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.contract import dtypes as dt
from tensorplug.contract.elementary import (
    angles,
    error_functions,
    exponentials,
    hyperbolic,
    logarithms,
    powers,
    trigonometric,
)
from tensorplug.contract.expressions import FUNCTIONS, Expression, cast, linearize, unify
from tensorplug.errors import DTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from tensorplug.contract.dtypes import DType

__all__ = ["BOUNDS", "expand", "spell_out"]

_FORMULAS: Final[dict[str, Callable[..., Expression]]] = {
    "exp": exponentials.exp,
    "expm1": exponentials.expm1,
    "log": logarithms.log,
    "log1p": logarithms.log1p,
    "log2": logarithms.log2,
    "log10": logarithms.log10,
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "tan": trigonometric.tan,
    "asin": angles.asin,
    "acos": angles.acos,
    "atan": angles.atan,
    "atan2": angles.atan2,
    "sinh": hyperbolic.sinh,
    "cosh": hyperbolic.cosh,
    "tanh": hyperbolic.tanh,
    "asinh": hyperbolic.asinh,
    "acosh": hyperbolic.acosh,
    "atanh": hyperbolic.atanh,
    "erf": error_functions.erf,
    "erfc": error_functions.erfc,
    "pow": powers.pow,
}

BOUNDS: Final[dict[tuple[str, DType], float]] = {
    (name, dtype): bound
    for name, bounds in {
        "exp": (1.5, 1.5),
        "expm1": (2.0, 2.5),
        "log": (1.0, 1.0),
        "log1p": (2.0, 1.5),
        "log2": (2.5, 2.0),
        "log10": (2.5, 2.0),
        "sin": (3.0, 2.5),
        "cos": (3.0, 2.5),
        "tan": (4.5, 4.0),
        "asin": (2.5, 2.5),
        "acos": (1.5, 1.5),
        "atan": (2.5, 2.0),
        "atan2": (2.5, 2.5),
        "sinh": (2.0, 2.0),
        "cosh": (2.0, 2.0),
        "tanh": (3.0, 3.0),
        "asinh": (2.0, 2.0),
        "acosh": (3.0, 3.0),
        "atanh": (2.5, 2.0),
        "erf": (3.5, 2.5),
        "erfc": (6.5, 8.0),
        "pow": (1.5, 1.5),
    }.items()
    for dtype, bound in zip((dt.float32, dt.float64), bounds, strict=True)
}
"""The largest error by function and dtype, in units in the last place of the true value."""


def expand(expression: Expression) -> Expression:
    """Return a node of ``FUNCTIONS`` as operations on its operands.

    It is computed in ``dtype.compute``, and rounded once.

    Raises:
        DTypeError: the expression is not a function of floats.

    """
    if expression.op not in FUNCTIONS or expression.dtype not in dt.FLOATING:
        raise DTypeError(f"expand: {expression.op} of {expression.dtype} is not in FUNCTIONS")
    wide = expression.dtype.compute
    operands = [cast(operand, wide) for operand in expression.operands]
    return cast(_FORMULAS[expression.op](*operands), expression.dtype)


def spell_out(roots: Sequence[Expression], functions: Collection[str]) -> list[Expression]:
    """Return expressions without elementary functions, but for those named in ``functions``.

    Equal operations are one object.

    Example:
        On hardware with ``exp`` alone, ``tanh`` is arithmetic::

            spell_out([tanh_of_x], {"exp"})

    """
    new: dict[int, Expression] = {}
    unified = unify(roots)
    for node in linearize(unified):
        operands = tuple(new[id(operand)] for operand in node.operands)
        made = Expression(node.op, node.dtype, operands, node.value) if operands else node
        is_function = node.op in FUNCTIONS and node.op not in functions
        new[id(node)] = expand(made) if is_function else made
    return unify([new[id(root)] for root in unified])
