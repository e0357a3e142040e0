"""Exponentials, logarithms, reciprocals and roots from Exp, Log, Sqrt and RealDiv."""

from __future__ import annotations

from math import inf, log
from typing import TYPE_CHECKING

from tensorplug.contract.tables import DecompositionTable
from tensorplug.decompositions.elementwise import complex_functions as parts
from tensorplug.decompositions.elementwise.complex_functions import by_parts
from tensorplug.ops.elementwise import arithmetic
from tensorplug.ops.elementwise import powers as ops
from tensorplug.ops.elementwise import unary as elementary
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import equal, isinf, logical_or
from tensorplug.ops.elementwise.unary import exp, sqrt
from tensorplug.ops.special.evaluation import polynomial

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(reads=())

# Coefficients of the rational approximation of (e**x - 1) / x for |x| <= 0.5 in S. L. Moshier's
# Cephes: e**x - 1 = 2 x P(x**2) / (Q(x**2) - x P(x**2)), lowest power of x**2 first. The first
# term, x, is taken out, so that rounding errors of the quotient matter little. The rest needs
# 2 P(z) - Q(z), which has no constant term: z times the third polynomial.
_EXP_P = (
    9.9999999999999999991025e-1,
    3.0299440770744196129956e-2,
    1.2617719307481059087798e-4,
)
_EXP_Q = (
    2.0000000000000000000897e0,
    2.2726554820815502876593e-1,
    2.5244834034968410419224e-3,
    3.0019850513866445504159e-6,
)
_EXP_C = (
    2 * _EXP_P[1] - _EXP_Q[1],
    2 * _EXP_P[2] - _EXP_Q[2],
    -_EXP_Q[3],
)


# ln 2 in two parts, the first of so few bits that its product with a small integer is exact.
_LN_2 = (0.693359375, -2.121944400546905827679e-4)
_FAR = 20.0  # from here on the error of e**x itself dominates


@decompositions.of(ops.EXPM1)
@by_parts(parts.expm1)
def expm1(x: Tensor) -> Tensor:
    # e**x - 1 = 2**k (e**r - 1) + 2**k - 1 with r = x - k ln 2 near 0: nothing cancels.
    small = arithmetic.minimum(arithmetic.maximum(x, -_FAR), _FAR)
    already = elementary.abs(x) < 0.5
    k = where(already, 0.0, elementary.floor(small * (1 / log(2)) + 0.5))
    r = where(already, x, small - k * _LN_2[0] - k * _LN_2[1])
    z = r * r
    odd = r * polynomial(_EXP_P, z)
    rest = (odd + z * polynomial(_EXP_C, z)) / (polynomial(_EXP_Q, z) - odd)
    near = r * (1.0 + rest)
    power = arithmetic.pow(2.0, k)
    middle = where(already, near, power * near + (power - 1.0))
    return where(elementary.abs(x) < _FAR, middle, exp(x) - 1.0)


@decompositions.of(ops.LOG1P)
@by_parts(parts.log1p)
def log1p(x: Tensor) -> Tensor:
    # 1 + x is rounded, but the quotient compensates: ln(u) / (u - 1) varies slowly.
    u = 1.0 + x
    far = elementary.log(u)
    return where(equal(u, 1.0), x, where(equal(u, x), far, far * (x / (u - 1.0))))


decompositions.of(ops.LOG2)(lambda x: parts.scaled(elementary.log(x), 1 / log(2)))
decompositions.of(ops.LOG10)(lambda x: parts.scaled(elementary.log(x), 1 / log(10)))
decompositions.of(ops.RECIPROCAL)(lambda x: 1.0 / x)
decompositions.of(ops.RSQRT)(lambda x: 1.0 / sqrt(x))


@decompositions.of(ops.HYPOT)
def hypot(a: Tensor, b: Tensor) -> Tensor:
    x, y = elementary.abs(a), elementary.abs(b)
    longer, shorter = arithmetic.maximum(x, y), arithmetic.minimum(x, y)
    ratio = shorter / longer
    length = where(equal(longer, 0.0), longer, longer * sqrt(1.0 + ratio * ratio))
    return where(logical_or(isinf(a), isinf(b)), inf, length)


@decompositions.of(ops.LOG_ADD_EXP)
def log_add_exp(a: Tensor, b: Tensor) -> Tensor:
    more = arithmetic.maximum(a, b) + ops.log1p(exp(-elementary.abs(a - b)))
    return where(equal(a, b), a + log(2), more)  # equal infinities have no difference
