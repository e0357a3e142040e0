"""Functions of complex numbers on their two parts, from functions of real numbers.

Each function takes and returns the real and the imaginary part. Formulas in which nothing cancels
are used, so that both parts are accurate up to branch cuts and poles, for large and for tiny
numbers; on a branch cut, the sign of zero says on which side a number lies. Infinities, NaN and
signed zeros are those of C99, annex G.

Source: W. Kahan, Branch Cuts for Complex Elementary Functions, in The State of the Art in
Numerical Analysis (1987), for the inverse functions; the others are addition theorems.
"""

from __future__ import annotations

from functools import wraps
from math import log, pi
from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.ops.elementwise import arithmetic, complexes, powers, trigonometry
from tensorplug.ops.elementwise import unary as elementary
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import (
    equal,
    isfinite,
    isinf,
    isnan,
    logical_and,
    logical_not,
    logical_or,
)
from tensorplug.ops.elementwise.powers import hypot
from tensorplug.ops.elementwise.rounding import copysign
from tensorplug.ops.elementwise.trigonometry import atan2
from tensorplug.ops.elementwise.unary import cos, exp, sin, sqrt

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dispatch.tensor import Tensor


Parts = tuple["Tensor", "Tensor"]

# From here on, x**2 + 1 rounds to x**2 in every dtype; below its reciprocal, 1 + x**2 to 1.
_LARGE = 2.0**30
_FAR = 20.0  # from here on, cosh x is e**x / 2, and tanh x is 1


def by_parts(
    function: Callable[[Tensor, Tensor], Parts],
) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Decorate a decomposition for real numbers: complex ones are those of ``function``."""

    def decorate(real: Callable[..., Tensor]) -> Callable[..., Tensor]:
        @wraps(real)
        def decomposed(x: Tensor, **attributes: Any) -> Tensor:
            if x.dtype not in dt.COMPLEX:
                return real(x, **attributes)
            return complexes.complex(*function(complexes.real(x), complexes.imag(x)))

        return decomposed

    return decorate


def _swapped(function: Callable[[Tensor, Tensor], Parts]) -> Callable[[Tensor, Tensor], Parts]:
    """Return ``f(i z) / i`` for an odd function that is real for real numbers."""

    def swapped(x: Tensor, y: Tensor) -> Parts:
        imaginary, real = function(y, x)
        return real, imaginary

    return swapped


# Exponentials ------------------------------------------------------------------------------


def _times_exp(x: Tensor, factor: Tensor) -> Tensor:
    """Return ``e**x factor``, also where e**x overflows and the product does not."""
    half = exp(x * 0.5)
    return where(x < _FAR, exp(x) * factor, half * factor * half)


def _turned(x: Tensor, y: Tensor) -> Tensor:
    """Return where x is infinite and y no angle: of the result only the size is known."""
    return logical_and(isinf(x), logical_not(isfinite(y)))


def expm1(x: Tensor, y: Tensor) -> Parts:
    half = sin(y * 0.5)
    near = powers.expm1(x) * cos(y) - 2.0 * half * half
    real = where(x > _FAR, _times_exp(x, cos(y)) - 1.0, near)
    imaginary = where(equal(y, 0.0), y, _times_exp(x, sin(y)))
    turned = _turned(x, y)
    vanishes = logical_and(turned, x < 0)
    return where(vanishes, -1.0, where(turned, x, real)), where(vanishes, 0.0, imaginary)


def sigmoid(x: Tensor, y: Tensor) -> Parts:
    # 1 / (1 + m e**-iy) with m = e**-|x|, times its conjugate: the divisor is a sum of squares.
    size = elementary.abs(x)
    m, rest, half = exp(-size), powers.expm1(-size), cos(y * 0.5)
    twice = 2.0 * half * half  # 1 + cos y
    below = rest * rest + 2.0 * m * twice
    real = where(x < 0, m * (rest + twice), m * twice - rest) / below
    imaginary = where(equal(y, 0.0), y, m * sin(y) / below)
    turned = _turned(x, y)
    return where(turned, where(x < 0, 0.0, 1.0), real), where(turned, 0.0, imaginary)


def _zero_without_angle(x: Tensor, y: Tensor) -> Tensor:
    """Return where x is zero and y no angle: 0 times its sine is then 0, and not NaN."""
    return logical_and(equal(x, 0.0), logical_not(isfinite(y)))


def sinh(x: Tensor, y: Tensor) -> Parts:
    size = elementary.abs(x)
    far = size > _FAR
    real = where(far, copysign(0.5, x) * _times_exp(size, cos(y)), trigonometry.sinh(x) * cos(y))
    imaginary = where(far, 0.5 * _times_exp(size, sin(y)), trigonometry.cosh(x) * sin(y))
    kept = logical_or(_zero_without_angle(x, y), _turned(x, y))
    return where(kept, x, real), where(equal(y, 0.0), y, imaginary)


def cosh(x: Tensor, y: Tensor) -> Parts:
    size = elementary.abs(x)
    far = size > _FAR
    real = where(far, 0.5 * _times_exp(size, cos(y)), trigonometry.cosh(x) * cos(y))
    large = copysign(0.5, x) * _times_exp(size, sin(y))
    imaginary = where(far, large, trigonometry.sinh(x) * sin(y))
    zero = logical_or(_zero_without_angle(x, y), equal(y, 0.0))
    nothing = copysign(copysign(0.0, x), copysign(1.0, x) * y)
    return where(_turned(x, y), size, real), where(zero, nothing, imaginary)


def tanh(x: Tensor, y: Tensor) -> Parts:
    size = elementary.abs(x)
    moderate = arithmetic.minimum(size, _FAR)
    sine, cosine = trigonometry.sinh(moderate), trigonometry.cosh(moderate)
    c, s = cos(y), sin(y)
    below = c * c + sine * sine
    far, turned = size > _FAR, _turned(x, y)
    one = 1.0 + 0.0 * c  # NaN if y is no angle
    real = copysign(where(far, where(turned, 1.0, one), sine * cosine / below), x)
    imaginary = where(far, 4.0 * s * c * exp(-2.0 * size), s * c / below)
    kept = equal(y, 0.0)
    return (
        where(equal(x, 0.0), x, real),
        where(kept, y, where(turned, 0.0, imaginary)),
    )


tan = _swapped(tanh)


# Inverse functions -------------------------------------------------------------------------


def _is_large(x: Tensor, y: Tensor) -> Tensor:
    return logical_or(elementary.abs(x) > _LARGE, elementary.abs(y) > _LARGE)


def _log_of_twice(x: Tensor, y: Tensor) -> Tensor:
    """Return ``log |2 z|``; nothing overflows."""
    return elementary.log(hypot(x * 0.5, y * 0.5)) + log(4)


def _sqrt(x: Tensor, y: Tensor) -> Parts:
    root = sqrt(0.5 * (elementary.abs(x) + hypot(x, y)))
    other = where(equal(root, 0.0), y, y * 0.5 / root)
    left = x < 0
    return where(left, elementary.abs(other), root), where(left, copysign(root, y), other)


def _arc(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the real parts of ``asin z`` and ``acos z``, and the imaginary part of ``asin z``."""
    a, b = _sqrt(1.0 - x, -y)
    c, d = _sqrt(1.0 + x, y)
    # b has the sign of -y, and d that of y: neither difference cancels.
    large = _is_large(x, y)
    asin = atan2(x, where(large, elementary.abs(y), a * c - b * d))
    acos = where(large, atan2(elementary.abs(y), x), 2.0 * atan2(a, c))
    near = trigonometry.asinh(a * d - b * c)
    imaginary = where(large, copysign(_log_of_twice(x, y), y), near)
    zero = equal(x, 0.0)  # whatever y is
    return where(zero, x, asin), where(zero, pi / 2, acos), imaginary


def asin(x: Tensor, y: Tensor) -> Parts:
    real, _, imaginary = _arc(x, y)
    return real, imaginary


def acos(x: Tensor, y: Tensor) -> Parts:
    _, real, imaginary = _arc(x, y)
    return real, -imaginary


def acosh(x: Tensor, y: Tensor) -> Parts:
    _, angle, imaginary = _arc(x, y)
    return elementary.abs(imaginary), copysign(angle, y)


asinh = _swapped(asin)


def atanh(x: Tensor, y: Tensor) -> Parts:
    a, b = elementary.abs(x), elementary.abs(y)
    gap = 1.0 - a
    # At the pole the square of y could underflow.
    at_pole = logical_and(equal(gap, 0.0), b < 1 / _LARGE)
    near = 0.25 * powers.log1p(4.0 * a / (gap * gap + b * b))
    near = where(at_pole, 0.5 * (log(2) - elementary.log(b)), near)
    # Far away it is 1 / z + i pi / 2; the halves' modulus does not overflow.
    half = hypot(a * 0.5, b * 0.5)
    infinite = logical_or(isinf(x), isinf(y))
    across, up = (where(infinite, 0.0, part * 0.5 / half / half * 0.5) for part in (a, b))
    large = _is_large(x, y)
    real = copysign(where(large, across, near), x)
    angle = 0.5 * atan2(2.0 * b, gap * (1.0 + a) - b * b)
    far = where(isnan(y), y, pi / 2 - up)
    imaginary = copysign(where(large, far, angle), y)
    return where(equal(x, 0.0), x, real), imaginary


# Logarithms --------------------------------------------------------------------------------


def log1p(x: Tensor, y: Tensor) -> Parts:
    u = 1.0 + x
    near = 0.5 * powers.log1p(x * (2.0 + x) + y * y)
    size = where(_is_large(u, y), _log_of_twice(u, y) - log(2), elementary.log(hypot(u, y)))
    small = logical_and(elementary.abs(x) < 0.5, elementary.abs(y) < 0.5)
    return where(small, near, size), atan2(y, u)


def scaled(x: Tensor, factor: float) -> Tensor:
    """Return ``x`` times a real number; of complex numbers each part alone, infinities too."""
    if x.dtype not in dt.COMPLEX:
        return x * factor
    return complexes.complex(complexes.real(x) * factor, complexes.imag(x) * factor)
