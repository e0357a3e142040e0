"""Sine, cosine and tangent.

Multiples of pi / 2 are subtracted in parts whose products with a small integer are exact. Where
the integer is not small, the fraction of a turn comes from a product of integers: the number's
significand with those bits of 1 / (2 pi) that it meets (M. H. Payne and R. N. Hanek, Radian
Reduction for Trigonometric Functions, 1983). The second way costs ten times as much; a renderer
may branch around it.

For the rest r, at most pi / 4, sin(r) = r + r**3 S(r**2) and cos(r) = 1 - r**2 / 2 + r**4 C(r**2).
The coefficients of S and C minimize the largest relative error (reweighted least squares at
Chebyshev's points): 3.8e-9 and 1.2e-10 in float32, 3.6e-18 and 5.6e-20 in float64.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import inf, nan
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorplug.contract import dtypes as dt
from tensorplug.contract.elementary.building import (
    equal,
    fma,
    fold_sign,
    in_two_parts,
    polynomial,
    real,
)
from tensorplug.contract.expressions import bitcast, constant, where

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.expressions import Expression

__all__ = ["cos", "half_pi", "sin", "tan"]


class _Reduction(NamedTuple):
    """How arguments of a dtype are reduced.

    ``bits``: of each part of pi / 2. ``reach``: up to which number the parts are enough.
    ``limb``: bits of a digit of the long product, half of those of the type.
    """

    bits: int
    reach: float
    limb: int


_REDUCTIONS: Final = {
    dt.float32: _Reduction(11, 2.0**13, 16),
    dt.float64: _Reduction(33, 2.0**20, 32),
}
_TWO_OVER_PI: Final = 0.63661977236758134308
_SINE: Final = {  # S
    dt.float32: (-0.166666546011, 0.00833216023575, -0.00019515212024),
    dt.float64: (
        -0.16666666666666630582,
        0.008333333333322087782,
        -0.00019841269829567438035,
        2.7557313614257433322e-6,
        -2.5050746701811710625e-8,
        1.5896170830776307119e-10,
    ),
}
_COSINE: Final = {  # C
    dt.float32: (0.0416666456675, -0.00138873155093, 0.0000244330720652),
    dt.float64: (
        0.041666666666666592722,
        -0.0013888888888873024342,
        0.000024801587288832675916,
        -2.7557314173994454507e-7,
        2.0875700139609184371e-9,
        -1.1358500822953215703e-11,
    ),
}


@cache
def pi() -> Fraction:
    """Return pi to 1300 bits, by J. Machin's formula."""
    bits = 1320

    def arc_cotangent(x: int) -> int:
        power = result = (1 << bits) // x
        divisor, sign = 1, 1
        while power:
            power //= x * x
            divisor, sign = divisor + 2, -sign
            result += sign * (power // divisor)
        return result

    return Fraction(16 * arc_cotangent(5) - 4 * arc_cotangent(239), 1 << bits)


def half_pi(x: Expression) -> tuple[float, float]:
    """Return pi / 2 as a number of the dtype of ``x``, and the remainder."""
    return in_two_parts(pi() / 2, real(x).fraction)


def sin(x: Expression) -> Expression:
    """Return the sine."""
    return where(equal(x, 0.0), x, _of_rest(x, _sine_after_turns))


def cos(x: Expression) -> Expression:
    """Return the cosine."""
    return _of_rest(x, lambda quadrant, rest: _sine_after_turns(quadrant + 1, rest))


def tan(x: Expression) -> Expression:
    """Return the tangent."""
    return where(equal(x, 0.0), x, _of_rest(x, _tangent_after_turns))


def _of_rest(x: Expression, formula: Callable[[Expression, Expression], Expression]) -> Expression:
    """Return the formula of the number of quarter turns, right in its last two bits, and the rest.

    The rest of infinity is NaN.
    """
    near = formula(*_reduce_near(x))
    quadrant, rest = _reduce_far(abs(x))
    is_negative = x < 0.0
    quadrant = where(is_negative, constant(0, quadrant.dtype) - quadrant, quadrant)
    far = formula(quadrant, where(abs(x) < inf, fold_sign(rest, is_negative), nan))
    return where(abs(x) < _REDUCTIONS[x.dtype].reach, near, far, likely=True)


def _tangent_after_turns(quadrant: Expression, rest: Expression) -> Expression:
    """Return the tangent of ``rest`` and so many quarters of a turn."""
    sine, cosine = _sine(rest), _cosine(rest)
    is_even = equal(quadrant & 1, 0)
    return where(is_even, sine, -cosine) / where(is_even, cosine, sine)


def _sine_after_turns(quadrant: Expression, rest: Expression) -> Expression:
    """Return the sine of ``rest`` and so many quarters of a turn."""
    size = where(equal(quadrant & 1, 0), _sine(rest), _cosine(rest))
    last = quadrant.dtype.itemsize * 8 - 1
    sign = (quadrant << (last - 1)) & (1 << last)
    return bitcast(bitcast(size, quadrant.dtype) ^ sign, rest.dtype)


def _sine(rest: Expression) -> Expression:
    z = rest * rest
    return fma(rest * z, polynomial(_SINE[rest.dtype], z), rest)


def _cosine(rest: Expression) -> Expression:
    z = rest * rest
    return fma(z * z, polynomial(_COSINE[rest.dtype], z), fma(z, -0.5, 1.0))


def _reduce_near(x: Expression) -> tuple[Expression, Expression]:
    """Return the nearest whole number of quarter turns, and the rest; up to ``reach``."""
    layout = real(x)
    shifted = fma(x, _TWO_OVER_PI, layout.rounder)
    k = shifted - layout.rounder
    rest = x
    for part in _split_half_pi(_REDUCTIONS[x.dtype].bits):
        rest = fma(k, -part, rest)
    return bitcast(shifted, layout.bits), rest


@cache
def _split_half_pi(bits: int) -> tuple[float, ...]:
    """Return pi / 2 as three numbers of so many bits, and the remainder."""
    parts = []
    rest = pi() / 2
    for number in (1, 2, 3):
        scale = 2 ** (bits * number - 1)
        part = Fraction(int(rest * scale), scale)
        parts.append(float(part))
        rest -= part
    return (*parts, float(rest))


_DIGITS: Final = 7  # of 1 / (2 pi): what remains of the closest number to a multiple is right


def _reduce_far(size: Expression) -> tuple[Expression, Expression]:
    """Do the same for 2**(fraction - limb) <= size < infinity."""
    layout, limb = real(size), _REDUCTIONS[size.dtype].limb
    mask = (1 << limb) - 1
    bits = bitcast(size, layout.bits)
    # The size is the significand times 2**(limb * (group - 1) + shift).
    exponent = (bits >> layout.fraction) - (layout.bias + layout.fraction - limb)
    group, shift = exponent >> (limb.bit_length() - 1), exponent & (limb - 1)
    significand = (bits & ((1 << layout.fraction) - 1)) | (1 << layout.fraction)
    low, high = (significand & mask) << shift, (significand >> limb) << shift
    factors = [low & mask, (low >> limb) | (high & mask), high >> limb]
    columns = _multiply(factors, _select_turn(group, limb), limb)
    # An eighth of a turn is added, so that the remainder is that from the nearest quarter.
    first = columns[0] + (1 << (limb - 3))
    quadrant = first >> (limb - 2)
    columns[0] = first & ((1 << (limb - 2)) - 1)
    return quadrant, _as_angle(columns, size, limb)


def _multiply(
    factors: list[Expression], fraction: list[Expression], limb: int
) -> list[Expression]:
    """Return the digits behind the point of a product, the first digits first.

    ``factors``: the digits of an integer, the last first. ``fraction``: those behind the point.
    """
    mask = (1 << limb) - 1
    columns: list[Expression | None] = [None] * (len(fraction) + 1)

    def add(column: int, value: Expression) -> None:
        if column >= 0:
            before = columns[column]
            columns[column] = value if before is None else before + value

    for i, digit in enumerate(fraction):
        for j, factor in enumerate(factors):
            product = factor * digit
            add(i - j, product & mask)
            add(i - j - 1, product >> limb)
    result: list[Expression] = []
    carry: Expression | None = None
    for column in reversed(columns[: len(fraction)]):
        assert column is not None
        value = column if carry is None else column + carry
        result.append(value & mask)
        carry = value >> limb
    return result[::-1]


def _select_turn(group: Expression, limb: int) -> list[Expression]:
    """Return the digits of 1 / (2 pi) times 2**(limb * (group - 1)), less whole turns.

    They are consecutive digits, from number ``group`` on: as in a shifter, each bit of ``group``
    chooses whether to move all of them.
    """
    steps = 3 if limb == 16 else 5  # group < 2**steps
    count = _DIGITS + 2**steps - 1
    number = int(2 ** (limb * (count - 1)) / (2 * pi()))
    digits = [
        constant((number >> (limb * (count - 1 - position))) & ((1 << limb) - 1), group.dtype)
        for position in range(count)
    ]
    for step in reversed(range(steps)):
        move = 1 << step
        is_set = equal((group >> step) & 1, 1)
        length = _DIGITS + move - 1
        digits = [where(is_set, digits[at + move], digits[at]) for at in range(length)]
    return digits


def _as_angle(columns: list[Expression], size: Expression, limb: int) -> Expression:
    """Return a fraction of a turn, of which an eighth is subtracted, in radians."""
    base = 2.0 ** real(size).fraction
    base_bits = real(size).bits_of(base)
    # In quarters of a turn. The digits become the last bits of a power of 2.
    first, second, *others = (
        (bitcast(digit | base_bits, size.dtype) - base) * (4.0 * 2.0 ** (-limb * (position + 1)))
        for position, digit in enumerate(columns[:4])
    )
    first = first - 0.5
    sum_ = first + second
    little = (second - (sum_ - first)) + (others[0] + others[1])
    quarters = sum_ + little
    little = little - (quarters - sum_)
    high, low = half_pi(size)
    return fma(quarters, high, fma(quarters, low, little * high))
