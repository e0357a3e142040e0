"""Special functions that NumPy lacks.

``erf`` in float64: on four intervals, rational functions whose coefficients are those of
fdlibm's ``s_erf.c`` (Sun Microsystems, 1993). Near 0 erf(x) = x + x*R(x**2); around 1 it is a
constant plus R(|x| - 1); above, 1 - exp(-x**2 - 0.5625 + R(1/x**2)) / x; from 6 on it rounds to
1. For float32 and float16 it is tanh(x * P(x**2)), the polynomial fitted by reweighted least
squares to atanh(erf(x)) / x so that erf has a relative error of 1e-07: NumPy computes tanh of
float32 several numbers at a time, and tanh damps the rounding error of its argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.algorithms import error_function
from tensorplug_cpu.execution import parallel
from tensorplug_cpu.memory.pool import empty

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array


Coefficients = tuple[float, ...]  # of x**0, x**1, ...
Pieces = tuple[tuple[float, "Callable[[Array], Array]"], ...]

_SINGLE: Final[Coefficients] = (
    1.12837924,
    0.102769371,
    -1.92496266e-4,
    -6.19251182e-4,
    8.74503952e-5,
    -5.63992724e-6,
    1.40317893e-7,
)
_REACH: Final = np.float32(4.2)  # tanh of what the polynomial gives here is 1
_SHARED: Final = 1 << 21  # elements from which threads, which wait for one another, help
_BLOCK: Final = 1 << 15  # numbers: what is made of them stays in the cache


def _ratio(pair: tuple[Coefficients, Coefficients], x: Array) -> Array:
    quotient: Array = horner(pair[0], x) / horner(pair[1], x)
    return quotient


def horner(coefficients: Coefficients, x: Any) -> Any:
    """Evaluate a polynomial by Horner's scheme, for arrays or vectors with their operators."""
    result = x * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        result += coefficient
        result *= x
    result += coefficients[0]
    return result


def _near_0(x: Array) -> Array:
    result: Array = x + x * _ratio(error_function.NEAR_0, np.square(x))
    return result


def _near_1(x: Array) -> Array:
    return error_function.AT_1 + _ratio(error_function.NEAR_1, x - 1)


def _tail(pair: tuple[Coefficients, Coefficients]) -> Callable[[Array], Array]:
    def evaluate(x: Array) -> Array:
        square = np.square(x)
        quotient: Array = np.exp(_ratio(pair, 1 / square) - square - 0.5625) / x
        return quotient

    return evaluate


_middle, _far = _tail(error_function.MIDDLE), _tail(error_function.FAR)
_PIECES: Final[Pieces] = (  # up to which |x|, and the formula for |x|
    (0.84375, _near_0),
    (1.25, _near_1),
    (1 / 0.35, lambda x: 1 - _middle(x)),
    (6.0, lambda x: 1 - _far(x)),
)
_COMPLEMENTS: Final[Pieces] = (
    (0.84375, lambda x: 1 - _near_0(x)),
    (1.25, lambda x: (1 - error_function.AT_1) - _ratio(error_function.NEAR_1, x - 1)),
    (1 / 0.35, _middle),
    (28.0, _far),  # beyond it is below the smallest number
)


def erf(x: Array) -> Array:
    """Return the error function: within 1 ulp in float64, 4 in float32, rounded in float16."""
    if x.dtype == np.float64:
        return _double(x)
    result = empty(x.shape, x.dtype)
    parts = None if x.size >= _SHARED else 1
    parallel.share_out(_single, (x.reshape(-1),), result.reshape(-1), parts=parts)
    return result


def _single(result: Array, x: Array) -> None:
    """Fill ``result`` block by block."""
    squares, powers = np.empty((2, min(_BLOCK, len(x))), np.float32)
    for start in range(0, len(x), _BLOCK):
        part = x[start : start + _BLOCK]
        square, power = squares[: len(part)], powers[: len(part)]
        inside = np.clip(part, -_REACH, _REACH, dtype=np.float32)
        np.square(inside, out=square)
        np.multiply(square, np.float32(_SINGLE[-1]), out=power)
        for coefficient in _SINGLE[-2:0:-1]:
            power += np.float32(coefficient)
            power *= square
        power += np.float32(_SINGLE[0])
        power *= inside
        np.tanh(power, out=power)
        result[start : start + _BLOCK] = power


def erfc_double(x: Array) -> Array:
    """Return 1 - erf(x) of float64 ``x`` >= 0, with its digits also where it is small."""
    result = np.where(np.isnan(x), x, 0.0)
    below = 0.0
    for limit, formula in _COMPLEMENTS:
        piece = np.flatnonzero((x >= below) & (x < limit))
        if piece.size:
            result[piece] = formula(x[piece])
        below = limit
    return result


def _double(x: Array) -> Array:
    flat = x.reshape(-1)
    size = np.abs(flat)
    result = np.where(np.isnan(flat), flat, 1.0)
    below = 0.0
    for limit, formula in _PIECES:
        piece = np.flatnonzero((size >= below) & (size < limit))
        if piece.size:
            result[piece] = formula(size[piece])
        below = limit
    np.copysign(result, flat, out=result)
    return result.reshape(x.shape)
