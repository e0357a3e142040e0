"""What the families of functions share: the layout of floats, polynomials, powers of 2."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from tensorplug.contract import dtypes as dt
from tensorplug.contract.expressions import apply, bitcast, constant, where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.contract.dtypes import DType, Scalar
    from tensorplug.contract.expressions import Expression

__all__ = [
    "Real",
    "both",
    "copy_sign",
    "either",
    "equal",
    "fma",
    "fold_sign",
    "in_two_parts",
    "is_signed",
    "limited",
    "polynomial",
    "real",
    "split",
    "sqrt",
]


@dataclass(frozen=True, slots=True)
class Real:
    """The layout of a float dtype.

    ``bits``: the unsigned integer dtype of its size. ``fraction``: the number of bits behind the
    point. ``bias``: of the exponent.
    """

    dtype: DType
    bits: DType
    fraction: int
    bias: int

    @property
    def smallest(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def rounder(self) -> float:
        """A number is added to it as the nearest integer, which the sum's last bits are."""
        return 1.5 * 2.0**self.fraction

    def bits_of(self, value: float) -> int:
        """Return the bits of a number as an integer."""
        return int(self.dtype.numpy.type(value).view(self.bits.numpy))


_REALS: Final = {
    dt.float32: Real(dt.float32, dt.uint32, 23, 127),
    dt.float64: Real(dt.float64, dt.uint64, 52, 1023),
}


def in_two_parts(value: Fraction, bits: int) -> tuple[float, float]:
    """Return a number with so many bits behind the point, and what it leaves of ``value``."""
    high = Fraction(round(value * 2**bits), 2**bits)
    return float(high), float(value - high)


def real(x: Expression) -> Real:
    """Return the layout of the numbers of ``x``."""
    return _REALS[x.dtype]


def fma(a: Expression | Scalar, b: Expression | Scalar, c: Expression | Scalar) -> Expression:
    """Return ``a * b + c``, rounded once or twice."""
    return apply("fma", a, b, c)


def sqrt(x: Expression) -> Expression:
    """Return the square root."""
    return apply("sqrt", x)


def copy_sign(x: Expression, sign: Expression) -> Expression:
    """Return ``x`` with the sign of ``sign``."""
    return apply("copysign", x, sign)


def both(a: Expression, b: Expression) -> Expression:
    """Return whether both conditions are true."""
    return apply("logical_and", a, b)


def either(a: Expression, b: Expression) -> Expression:
    """Return whether one condition or both are true."""
    return apply("logical_or", a, b)


def is_signed(x: Expression) -> Expression:
    """Return whether the sign is negative, also of zero and NaN."""
    return bitcast(x, dt.int32 if x.dtype is dt.float32 else dt.int64) < 0


def equal(a: Expression, b: Expression | Scalar) -> Expression:
    """Return whether the two are equal."""
    return apply("equal", a, b)


def fold_sign(x: Expression, negative: Expression) -> Expression:
    """Return ``-x`` where ``negative``, else ``x``."""
    return where(negative, -x, x)


def limited(x: Expression, low: float | None = None, high: float | None = None) -> Expression:
    """Return ``x``, at least ``low`` and at most ``high``; NaN stays NaN.

    Hardware's minimum and maximum give their second operand where one is NaN, so each of the two
    is one instruction in this form.
    """
    if high is not None:
        bound = constant(high, x.dtype)
        x = where(bound < x, bound, x)
    if low is not None:
        bound = constant(low, x.dtype)
        x = where(x < bound, bound, x)
    return x


def polynomial(coefficients: Sequence[float], x: Expression) -> Expression:
    """Return ``c[0] + c[1] * x + c[2] * x**2 + ...`` by Horner's rule."""
    result: Expression | float = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        result = fma(x, result, coefficient)
    assert not isinstance(result, float), "a polynomial has a power of x"
    return result


def split(x: Expression) -> tuple[Expression, Expression]:
    """Return ``x`` as a sum of two numbers: that of its leading half of bits, and the rest.

    Products of the first ones are exact; so are those of the others, but in float64 for what does
    not matter beside the product of the numbers.
    """
    layout = real(x)
    half = (layout.fraction + 1) // 2
    mask = (1 << layout.bits.itemsize * 8) - (1 << (layout.fraction + 1 - half))
    head = bitcast(bitcast(x, layout.bits) & mask, x.dtype)
    return head, x - head
