"""References for comparison and logic."""

from __future__ import annotations

import cmath
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.case import Array


def elementwise(function: Callable[..., Any], count: int) -> Callable[..., Array]:
    """Return a reference that applies a Python function to Python numbers, one by one."""
    ufunc = np.frompyfunc(function, count, 1)

    def reference(*inputs: Array) -> Array:
        with np.errstate(invalid="ignore"):  # NumPy warns about NaN even here
            return np.asarray(ufunc(*(operand.astype(object) for operand in inputs))).astype(bool)

    return reference


equal = elementwise(operator.eq, 2)
not_equal = elementwise(operator.ne, 2)
less = elementwise(operator.lt, 2)
less_equal = elementwise(operator.le, 2)
greater = elementwise(operator.gt, 2)
greater_equal = elementwise(operator.ge, 2)
logical_and = elementwise(lambda a, b: a and b, 2)
logical_or = elementwise(lambda a, b: a or b, 2)
logical_not = elementwise(operator.not_, 1)
logical_xor = elementwise(operator.xor, 2)
is_finite = elementwise(cmath.isfinite, 1)
is_inf = elementwise(cmath.isinf, 1)
is_nan = elementwise(cmath.isnan, 1)
