"""Elementwise arithmetic from primitives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import DecompositionTable
from tensorplug.decompositions.elementwise import complex_functions as parts
from tensorplug.decompositions.elementwise.complex_functions import by_parts
from tensorplug.ops.elementwise import arithmetic, choosing
from tensorplug.ops.elementwise import unary as ops
from tensorplug.ops.elementwise.comparison import equal
from tensorplug.ops.order import reverse_order
from tensorplug.ops.special.evaluation import polynomial

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(reads=())
decompositions.of(ops.SQUARE)(lambda x: x * x)


@decompositions.of(arithmetic.SQUARED_DIFFERENCE)
def squared_difference(a: Tensor, b: Tensor) -> Tensor:
    difference = a - b
    return difference * difference


@decompositions.of(arithmetic.ADD_N)
def add_n(xs: list[Tensor]) -> Tensor:
    # Halves, so that rounding errors grow with the logarithm of the list's length.
    half = len(xs) // 2
    return add_n(xs[:half]) + add_n(xs[half:]) if half else xs[0]


@decompositions.of(arithmetic.DIV_NO_NAN)
def div_no_nan(a: Tensor, b: Tensor) -> Tensor:
    nothing = equal(b, 0.0)
    return choosing.where(nothing, 0.0, a / choosing.where(nothing, 1.0, b))


decompositions.of(arithmetic.MINIMUM)(
    lambda a, b: reverse_order(arithmetic.maximum(reverse_order(a), reverse_order(b)))
)


# Coefficients of W. J. Cody and W. Waite's rational approximation of (tanh(x) - x) / x**3 for
# |x| < 0.625 (Software Manual for the Elementary Functions, 1980), lowest power of x**2 first.
_TANH_P = (-1614.6876844170844, -99.28772310019185, -0.9643991794250522)
_TANH_Q = (4844.063053251255, 2235.4883906010045, 112.81167849163293, 1.0)


@decompositions.of(ops.TANH)
@by_parts(parts.tanh)
def tanh(x: Tensor) -> Tensor:
    size = ops.abs(x)
    # Near 0 the quotient below cancels, so a rational function is used.
    z = x * x
    # A product, not a sum with x: -0.0 stays -0.0.
    near = x * (1.0 + z * (polynomial(_TANH_P, z) / polynomial(_TANH_Q, z)))
    far = 1.0 - 2.0 / (ops.exp(size * 2.0) + 1.0)
    return choosing.where(size < 0.625, near, choosing.where(x < 0, -far, far))
