"""Rounding, signs, bounds and neighbours from Floor, comparisons and arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.elementwise import arithmetic, casting, clipping, complexes
from tensorplug.ops.elementwise import rounding as ops
from tensorplug.ops.elementwise import unary as elementary
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import (
    equal,
    isinf,
    isnan,
    less,
    logical_and,
    logical_or,
)
from tensorplug.ops.elementwise.powers import hypot
from tensorplug.ops.elementwise.unary import floor

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import Scalar
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(reads=())
decompositions.of(ops.CEIL)(lambda x: -floor(-x) if x.dtype in dt.FLOATING else x)
decompositions.of(ops.TRUNC)(
    lambda x: where(x < 0, ops.ceil(x), floor(x)) if x.dtype in dt.FLOATING else x
)


@decompositions.of(ops.ROUND)
def round(x: Tensor) -> Tensor:
    if x.dtype in dt.COMPLEX:
        return complexes.complex(ops.round(complexes.real(x)), ops.round(complexes.imag(x)))
    if x.dtype not in dt.FLOATING:
        return x
    below = floor(x)
    rest = x - below  # exact
    even = equal(floor(below * 0.5) * 2.0, below)
    down = logical_or(rest < 0.5, logical_and(equal(rest, 0.5), even))
    nearest = where(down, below, below + 1.0)
    return where(equal(nearest, 0.0), x * 0.0, nearest)  # -0.3 becomes -0.0


@decompositions.of(ops.SIGN)
def sign(x: Tensor) -> Tensor:
    if x.dtype in dt.COMPLEX:
        parts = complexes.real(x), complexes.imag(x)
        # The modulus of large numbers overflows: first over the larger part.
        larger = arithmetic.maximum(*map(elementary.abs, parts))
        unit = where(logical_or(equal(larger, 0.0), isinf(larger)), 1.0, larger)
        a, b = (part / unit for part in parts)
        size = hypot(a, b)
        nothing = equal(size, 0.0)
        size = where(nothing, 1.0, size)
        return complexes.complex(*[where(nothing, 0.0, part / size) for part in (a, b)])
    positive = where(x > 0, 1, where(equal(x, 0), 0, x))  # the last one is NaN
    return where(x < 0, -1, positive) if x.dtype not in dt.UNSIGNED else positive


@decompositions.of(ops.SIGN_BIT)
def signbit(x: Tensor) -> Tensor:
    # Arithmetic does not reveal the sign of a NaN; it counts as positive here.
    if x.dtype not in dt.FLOATING:
        return less(x, 0)
    return logical_or(x < 0, logical_and(equal(x, 0.0), 1.0 / x < 0))


decompositions.of(ops.COPY_SIGN)(lambda a, b: where(equal(ops.signbit(a), ops.signbit(b)), a, -a))


@decompositions.of(ops.NEXT_AFTER)
def nextafter(a: Tensor, b: Tensor) -> Tensor:
    """Return the next float, after Rump, Zimmermann, Boldo and Melquiond.

    Adding a little more than half a unit in the last place rounds to the next float. Small
    numbers are scaled up first; for subnormal ones the unit is the smallest subnormal.
    Source: BIT Numerical Mathematics 49 (2009), 419-431.
    """
    half, least = a.dtype.eps / 2, a.dtype.smallest_normal * a.dtype.eps
    upwards = casting.astype(where(b > a, 1.0, -1.0), a.dtype)
    size = elementary.abs(a)

    def stepped(x: Tensor) -> Tensor:
        return x + upwards * (elementary.abs(x) * (half * (1 + 2 * half)))

    small = where(size < least / half, a + upwards * least, stepped(a / half) * half)
    finite = where(size < least / half / half, small, stepped(a))
    result = where(isinf(a), ops.copysign(a.dtype.max, a), finite)
    result = where(equal(result, 0.0), a * 0.0, result)  # from below: -0.0
    return where(logical_or(isnan(a), isnan(b)), a + b, where(equal(a, b), b, result))


@decompositions.of(clipping.CLIP_BY_VALUE)
def clip_by_value(x: Tensor, *, clip_value_min: Scalar, clip_value_max: Scalar) -> Tensor:
    return arithmetic.minimum(arithmetic.maximum(x, clip_value_min), clip_value_max)
