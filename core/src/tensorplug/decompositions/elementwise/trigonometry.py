"""Trigonometric and hyperbolic functions from Atan, Sin, Cos, Exp, Log and Sqrt.

Those of complex numbers are in ``complex_functions``.
"""

from __future__ import annotations

from math import inf, log, pi
from typing import TYPE_CHECKING

from tensorplug.contract.tables import DecompositionTable
from tensorplug.decompositions.elementwise import complex_functions as parts
from tensorplug.decompositions.elementwise.complex_functions import by_parts
from tensorplug.ops.elementwise import arithmetic
from tensorplug.ops.elementwise import trigonometry as ops
from tensorplug.ops.elementwise import unary as elementary
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import equal, logical_and
from tensorplug.ops.elementwise.powers import log1p
from tensorplug.ops.elementwise.rounding import copysign, signbit
from tensorplug.ops.elementwise.unary import exp, sqrt
from tensorplug.ops.special.evaluation import polynomial

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(reads=())


@decompositions.of(ops.ACOS)
@by_parts(parts.acos)
def acos(x: Tensor) -> Tensor:
    # Half the angle: near x = 1 the cosine hardly depends on a small angle.
    return 2.0 * elementary.atan(sqrt((1.0 - x) / (1.0 + x)))


@decompositions.of(ops.ASIN)
@by_parts(parts.asin)
def asin(x: Tensor) -> Tensor:
    return elementary.atan(x / sqrt((1.0 - x) * (1.0 + x)))


@decompositions.of(ops.ACOSH)
@by_parts(parts.acosh)
def acosh(x: Tensor) -> Tensor:
    above = x - 1.0
    near = log1p(above + sqrt(above) * sqrt(above + 2.0))  # NaN below 1
    return where(x < _LARGE, near, elementary.log(x) + log(2))


@decompositions.of(ops.ASINH)
@by_parts(parts.asinh)
def asinh(x: Tensor) -> Tensor:
    size = elementary.abs(x)
    moderate = arithmetic.minimum(size, _LARGE)  # its square does not overflow
    square = moderate * moderate
    near = log1p(moderate + square / (1.0 + sqrt(1.0 + square)))
    far = elementary.log(size) + log(2)
    return where(equal(x, 0.0), x, copysign(where(size < _LARGE, near, far), x))


# From here on, x**2 + 1 rounds to x**2 in every dtype, and e**x + e**-x to e**x.
_LARGE = 2.0**30
_FAR = 20.0


@decompositions.of(ops.ATANH)
@by_parts(parts.atanh)
def atanh(x: Tensor) -> Tensor:
    size = elementary.abs(x)
    result = 0.5 * log1p(2.0 * size / (1.0 - size))
    return where(equal(x, 0.0), x, copysign(result, x))


@decompositions.of(ops.ATAN2)
def atan2(a: Tensor, b: Tensor) -> Tensor:
    height, width = elementary.abs(a), elementary.abs(b)
    both = logical_and(equal(height, inf), equal(width, inf))
    origin = logical_and(equal(height, 0.0), equal(width, 0.0))
    slope = where(both, 1.0, where(origin, 0.0, height / width))
    right = elementary.atan(slope)  # the angle of the point mirrored into the first quadrant
    return copysign(where(signbit(b), pi - right, right), a)


@decompositions.of(ops.TAN)
@by_parts(parts.tan)
def tan(x: Tensor) -> Tensor:
    return elementary.sin(x) / elementary.cos(x)


# Coefficients of W. J. Cody and W. Waite's rational approximation of (sinh(x) - x) / x**3 for
# |x| <= 1, as in S. L. Moshier's Cephes, lowest power of x**2 first.
_SINH_P = (
    -3.51754964808151394800e5,
    -1.15614435765005216044e4,
    -1.63725857525983828727e2,
    -7.89474443963537015605e-1,
)
_SINH_Q = (
    -2.11052978884890840399e6,
    3.61578279834431989373e4,
    -2.77711081420602794433e2,
    1.0,
)


@decompositions.of(ops.SINH)
@by_parts(parts.sinh)
def sinh(x: Tensor) -> Tensor:
    size = elementary.abs(x)
    z = x * x
    near = x * (1.0 + z * (polynomial(_SINH_P, z) / polynomial(_SINH_Q, z)))
    power = exp(size)
    middle = 0.5 * power - 0.5 / power
    far = copysign(where(size < _FAR, middle, _compute_half_exp(size)), x)
    return where(size < 1.0, near, far)


@decompositions.of(ops.COSH)
@by_parts(parts.cosh)
def cosh(x: Tensor) -> Tensor:
    size = elementary.abs(x)
    power = exp(size)
    return where(size < _FAR, 0.5 * power + 0.5 / power, _compute_half_exp(size))


# A little more than ln 2, in so few bits that it is subtracted exactly from numbers above _FAR,
# and by how much half of its exponential exceeds 1 (Cody and Waite, Software Manual, 1980).
_LN_V = 0.6931610107421875
_HALF_V = 0.13830277879601902638e-4


def _compute_half_exp(x: Tensor) -> Tensor:
    """e**x / 2, also where e**x overflows and its half does not."""
    power = exp(x - _LN_V)
    return power + power * _HALF_V
