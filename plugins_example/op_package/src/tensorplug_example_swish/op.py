"""The kernel spec, which defines what every kernel of the op must do, and the public function."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from tensorplug.plugin import (
    ArgumentError,
    Attribute,
    InputTypes,
    KernelSpec,
    chained,
    dispatch,
    inference,
)
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug import Tensor


# REPLACE: a function for each attribute that needs one.
def _beta(value: Any, known: InputTypes) -> float:
    """Return beta rounded to x's dtype, so that all backends multiply by the same number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= sys.float_info.max:
        raise ArgumentError(f"must be a positive, finite number, got {value!r}")
    dtype = known["x"].dtype
    with np.errstate(over="ignore", under="ignore"):
        rounded = float(np.array(value, dtype.numpy))
    if not 0 < rounded < float("inf"):
        raise ArgumentError(f"{value!r} is out of the range of {dtype}")
    return rounded


# REPLACE: inputs, the inference rule, attributes with defaults, dtypes.
SWISH = KernelSpec(
    "Swish",
    ("x",),
    inference.same,
    attributes={"beta": Attribute(_beta, 1.0)},
    accepts=dt.REAL,
    promote=("x",),
    inexact=True,  # integers and booleans become float32 before a kernel sees them
)


# REPLACE: the public function and its documentation.
@chained
def swish(x: Any, /, *, beta: float = 1.0) -> Tensor:
    """Return ``x * sigmoid(beta * x)`` elementwise.

    It is close to ``relu(x)`` far from 0, and smooth but not monotonic near 0; with beta = 1 it is
    also called SiLU. At the infinities it takes its limits: 0 at -inf, inf at inf.

    Args:
        x: real numbers of any shape; integers and booleans become float32.
        beta: a positive number; the larger, the closer to ``relu``.

    Raises:
        ArgumentError: beta is not positive and finite, or out of the range of x's dtype.
        DTypeError: x is complex or text.

    Source: P. Ramachandran, B. Zoph, Q. V. Le, "Searching for Activation Functions", 2017.

    """
    return dispatch(SWISH, x, beta=beta)
