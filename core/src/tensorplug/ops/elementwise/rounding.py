"""Rounding, signs, bounds, and neighbouring floats.

The source is the array API standard 2025.12 unless a docstring says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, SupportsIndex

from tensorplug.contract import dtypes as dt
from tensorplug.contract import inference, shapes
from tensorplug.contract.expressions import of_floats
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch.calls import as_tensor, chained, dispatch_binary, dispatch_unary
from tensorplug.errors import ArgumentError
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import isfinite
from tensorplug.ops.elementwise.complexes import complex, imag, real

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.expression_rules import Given
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["ceil", "copysign", "nextafter", "round", "sign", "signbit", "trunc"]


def _define(name: str, accepts: frozenset[DType], expression: Given | None = None) -> KernelSpec:
    return KernelSpec(
        name,
        ("x",),
        inference.same,
        accepts=accepts,
        promote=("x",),
        expression=expression,
        elementwise=True,
    )


CEIL = _define("Ceil", dt.REAL, of_floats("ceil"))
ROUND = _define("Round", dt.NUMERIC, of_floats("round"))
TRUNC = _define("Trunc", dt.REAL, of_floats("trunc"))
SIGN = _define("Sign", dt.NUMERIC)
SIGN_BIT = KernelSpec(
    "SignBit",
    ("x",),
    inference.same_shape(dt.bool_),
    accepts=dt.REAL,
    promote=("x",),
    elementwise=True,
)
COPY_SIGN = KernelSpec(
    "CopySign",
    ("a", "b"),
    inference.broadcast,
    accepts=dt.REAL,
    promote=("a", "b"),
    inexact=True,
    expression="copysign",
)
NEXT_AFTER = KernelSpec(
    "NextAfter",
    ("a", "b"),
    inference.broadcast,
    accepts=dt.REAL,
    promote=("a", "b"),
    inexact=True,
    exact=True,
    elementwise=True,
)


_DECIMALS: Final = {dt.float32: 31, dt.float64: 292}
"""By how many decimals every number with a fraction can move without overflow."""


@chained
def ceil(x: ArrayLike, /) -> Tensor:
    """Return ``smallest integer >= x`` elementwise. Rounding up; integers stay as they are.

    The dtype does not change. (The array API standard's ``ceil``.)

    Raises:
        DTypeError: booleans, complex numbers or strings.

    Examples:
        >>> tp.ceil([-1.5, 0.2, 2.0])
        Tensor([-1.,  1.,  2.], dtype=float32, device='cpu')

    """
    return dispatch_unary(CEIL, x)


@chained
def round(x: ArrayLike, /, decimals: SupportsIndex = 0) -> Tensor:
    """Return the nearest number with ``decimals`` decimals elementwise, the even one at halves.

    Negative ``decimals`` round to tens, hundreds, ... Both parts of complex numbers are rounded.
    The dtype does not change; where it cannot hold the nearest multiple of ten, hundred, ... of an
    integer, the result is unspecified. (The array API standard's ``round``, with the decimals of
    NumPy's. As there, ``x * 10**decimals`` is rounded first, so a number near a half may go to the
    other side.)

    Raises:
        DTypeError: booleans or strings.
        ArgumentError: ``decimals`` is not an integer; or ``x`` holds floats, and ``decimals`` is
            beyond 31 in either direction (292 for float64 and complex128).

    Examples:
        >>> tp.round([0.5, 1.5, 2.5, -0.5])
        Tensor([ 0.,  2.,  2., -0.], dtype=float32, device='cpu')
        >>> tp.round([3.14159, 2.71828], 2)
        Tensor([3.14, 2.72], dtype=float32, device='cpu')
        >>> tp.round([1234, 1250, -1250], -2)
        Tensor([ 1200,  1200, -1200], dtype=int32, device='cpu')
        >>> tp.round(1.6 - 0.4j)
        Tensor(2.-0.j, dtype=complex64, device='cpu')

    """
    places = shapes.index(decimals, "round: decimals")
    if not places:
        return dispatch_unary(ROUND, x)
    tensor = as_tensor(x, what="round: x")
    dtype = tensor.dtype
    if dtype in dt.COMPLEX:
        return complex(round(real(tensor), places), round(imag(tensor), places))
    if dtype in dt.INTEGER and places < 0:
        return _round_integers(tensor, 10**-places)
    if dtype not in dt.FLOATING:
        return dispatch_unary(ROUND, tensor)
    most = _DECIMALS[dtype.compute]
    if abs(places) > most:
        raise ArgumentError(
            f"round: decimals must be from {-most} to {most} for {dtype}, got {places}"
        )
    wide = astype(tensor, dtype.compute, copy=False)
    scale = 10.0 ** abs(places)
    scaled = wide * scale if places > 0 else wide / scale
    whole = dispatch_unary(ROUND, scaled)
    if places < 0:
        return astype(whole * scale, dtype, copy=False)
    # A number that overflows has no fraction.
    rounded = where(isfinite(scaled), whole / scale, dispatch_unary(ROUND, wide))
    return astype(rounded, dtype, copy=False)


def _round_integers(x: Tensor, scale: int) -> Tensor:
    """Return the multiples of a power of 10 that are nearest to integers, even ones at halves."""
    if scale > x.dtype.max:
        return x * 0
    quotient, rest = x // scale, x % scale
    other = scale - rest
    up = (rest > other) | ((rest == other) & (quotient % 2 == 1))
    return (quotient + astype(up, x.dtype)) * scale


@chained
def trunc(x: ArrayLike, /) -> Tensor:
    """Return ``x`` without its fraction, elementwise. Rounding towards zero; integers stay.

    The dtype does not change. (The array API standard's ``trunc``.)

    Raises:
        DTypeError: booleans, complex numbers or strings.

    Examples:
        >>> tp.trunc([-1.7, 1.7])
        Tensor([-1.,  1.], dtype=float32, device='cpu')

    """
    return dispatch_unary(TRUNC, x)


@chained
def sign(x: ArrayLike, /) -> Tensor:
    """Return -1, 0, 1 or NaN elementwise; for complex numbers ``x / |x|``, and 0 for 0.

    The dtype does not change. (The array API standard's ``sign``.)

    Raises:
        DTypeError: booleans or strings.

    Examples:
        >>> tp.sign([-3, 0, 5])
        Tensor([-1,  0,  1], dtype=int32, device='cpu')
        >>> tp.sign([-0.5, tp.nan])
        Tensor([-1., nan], dtype=float32, device='cpu')
        >>> tp.sign([3 + 4j, 0j]).numpy().round(4)
        array([0.6+0.8j, 0. +0.j ], dtype=complex64)

    """
    return dispatch_unary(SIGN, x)


@chained
def signbit(x: ArrayLike, /) -> Tensor:
    """Return whether the sign bit of ``x`` is set elementwise (bool), as in -0.0 and some NaNs.

    Source: the array API standard's ``signbit``, for integers too.

    Raises:
        DTypeError: booleans, complex numbers or strings.

    Examples:
        >>> tp.signbit([-1.0, -0.0, 0.0])
        Tensor([ True,  True, False], dtype=bool, device='cpu')

    """
    return dispatch_unary(SIGN_BIT, x)


@chained
def copysign(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``|a|`` with the sign of ``b``, even of 0.0, elementwise. Integers become floats.

    The operands broadcast. (The array API standard's ``copysign``.)

    Raises:
        DTypeError: complex numbers or strings.
        ShapeError: the operands do not broadcast.

    Examples:
        >>> tp.copysign([1, 2, 3], [-1.0, 0.0, -0.0])
        Tensor([-1.,  2., -3.], dtype=float32, device='cpu')

    """
    return dispatch_binary(COPY_SIGN, a, b)


@chained
def nextafter(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return the float next to ``a`` towards ``b`` elementwise; ``b`` if they are equal.

    The operands broadcast; integers become float32. The gradient flows to ``a``. (The array API
    standard's ``nextafter``.)

    Raises:
        DTypeError: complex numbers or strings.
        ShapeError: the operands do not broadcast.

    Examples:
        >>> tp.nextafter(1.0, 2.0) - 1 == 2.0**-23  # the spacing of float32 at 1
        Tensor(True, dtype=bool, device='cpu')
        >>> tp.nextafter(1, [0, 1, 2]) < 1
        Tensor([ True, False, False], dtype=bool, device='cpu')

    """
    return dispatch_binary(NEXT_AFTER, a, b)
