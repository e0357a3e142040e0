"""The elementary functions by arithmetic, for renderers that lack accurate ones of their own.

``expand`` writes a function of ``expressions.FUNCTIONS`` as operations that every processor does
to several numbers at a time: no branches (both sides are computed, and one is chosen), no tables,
and only integers of the numbers' size. ``BOUNDS`` says how accurate the results are. They hold
whether or not an ``fma`` rounds its product; the other operations must be rounded one by one, as
their dtype says, and subnormal numbers must not be flushed to 0.
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
from tensorplug.contract.expressions import FUNCTIONS, cast
from tensorplug.errors import DTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.expressions import Expression

__all__ = ["BOUNDS", "expand"]

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
    ("exp", dt.float32): 2.0,
}
"""The largest error by function and dtype, in units in the last place of the true value."""


def expand(expression: Expression) -> Expression:
    """Return a node of ``FUNCTIONS`` as operations on its operands.

    float16 is computed in float32, and rounded once.

    Raises:
        DTypeError: the expression is not a function of floats.

    """
    if expression.op not in FUNCTIONS or expression.dtype not in dt.FLOATING:
        raise DTypeError(f"expand: {expression.op} of {expression.dtype} is not in FUNCTIONS")
    wide = dt.float32 if expression.dtype is dt.float16 else expression.dtype
    operands = [cast(operand, wide) for operand in expression.operands]
    return cast(_FORMULAS[expression.op](*operands), expression.dtype)
