"""Special functions that NumPy lacks.

``erf`` in float64: on four intervals, rational functions whose coefficients are those of
fdlibm's ``s_erf.c`` (Sun Microsystems, 1993). Near 0 erf(x) = x + x*R(x**2); around 1 it is a
constant plus R(|x| - 1); above, 1 - exp(-x**2 - 0.5625 + R(1/x**2)) / x; from 6 on it rounds to
1. For float32 and float16 it is tanh(x * P(x**2)), the polynomial fitted by reweighted least
squares to atanh(erf(x)) / x so that erf has a relative error of 1e-07: NumPy computes tanh of
float32 several numbers at a time, and tanh damps the rounding error of its argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug_cpu import parallel
from tensorplug_cpu.memory_pool import empty

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array

__all__ = ["erf", "erfc_double"]

Coefficients = tuple[float, ...]  # of x**0, x**1, ...
Pieces = tuple[tuple[float, "Callable[[Array], Array]"], ...]

_NEAR_0: Final = (
    (
        1.28379167095512558561e-01,
        -3.25042107247001499370e-01,
        -2.84817495755985104766e-02,
        -5.77027029648944159157e-03,
        -2.37630166566501626084e-05,
    ),
    (
        1.0,
        3.97917223959155352819e-01,
        6.50222499887672944485e-02,
        5.08130628187576562776e-03,
        1.32494738004321644526e-04,
        -3.96022827877536812320e-06,
    ),
)
_AT_1: Final = 8.45062911510467529297e-01  # about erf(1), with few bits, so that adding is exact
_NEAR_1: Final = (
    (
        -2.36211856075265944077e-03,
        4.14856118683748331666e-01,
        -3.72207876035701323847e-01,
        3.18346619901161753674e-01,
        -1.10894694282396677476e-01,
        3.54783043256182359371e-02,
        -2.16637559486879084300e-03,
    ),
    (
        1.0,
        1.06420880400844228286e-01,
        5.40397917702171048937e-01,
        7.18286544141962662868e-02,
        1.26171219808761642112e-01,
        1.36370839120290507362e-02,
        1.19844998467991074170e-02,
    ),
)
_MIDDLE: Final = (
    (
        -9.86494403484714822705e-03,
        -6.93858572707181764372e-01,
        -1.05586262253232909814e01,
        -6.23753324503260060396e01,
        -1.62396669462573470355e02,
        -1.84605092906711035994e02,
        -8.12874355063065934246e01,
        -9.81432934416914548592e00,
    ),
    (
        1.0,
        1.96512716674392571292e01,
        1.37657754143519042600e02,
        4.34565877475229228821e02,
        6.45387271733267880336e02,
        4.29008140027567833386e02,
        1.08635005541779435134e02,
        6.57024977031928170135e00,
        -6.04244152148580987438e-02,
    ),
)
_FAR: Final = (
    (
        -9.86494292470009928597e-03,
        -7.99283237680523006574e-01,
        -1.77579549177547519889e01,
        -1.60636384855821916062e02,
        -6.37566443368389627722e02,
        -1.02509513161107724954e03,
        -4.83519191608651397019e02,
    ),
    (
        1.0,
        3.03380607434824582924e01,
        3.25792512996573918826e02,
        1.53672958608443695994e03,
        3.19985821950859553908e03,
        2.55305040643316442583e03,
        4.74528541206955367215e02,
        -2.24409524465858183362e01,
    ),
)
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
    return _horner(pair[0], x) / _horner(pair[1], x)


def _horner(coefficients: Coefficients, x: Array) -> Array:
    result = np.asarray(x * coefficients[-1])
    for coefficient in coefficients[-2:0:-1]:
        result += coefficient
        result *= x
    result += coefficients[0]
    return result


def _near_0(x: Array) -> Array:
    result: Array = x + x * _ratio(_NEAR_0, np.square(x))
    return result


def _near_1(x: Array) -> Array:
    return _AT_1 + _ratio(_NEAR_1, x - 1)


def _tail(pair: tuple[Coefficients, Coefficients]) -> Callable[[Array], Array]:
    def evaluate(x: Array) -> Array:
        square = np.square(x)
        quotient: Array = np.exp(_ratio(pair, 1 / square) - square - 0.5625) / x
        return quotient

    return evaluate


_middle, _far = _tail(_MIDDLE), _tail(_FAR)
_PIECES: Final[Pieces] = (  # up to which |x|, and the formula for |x|
    (0.84375, _near_0),
    (1.25, _near_1),
    (1 / 0.35, lambda x: 1 - _middle(x)),
    (6.0, lambda x: 1 - _far(x)),
)
_COMPLEMENTS: Final[Pieces] = (
    (0.84375, lambda x: 1 - _near_0(x)),
    (1.25, lambda x: (1 - _AT_1) - _ratio(_NEAR_1, x - 1)),
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
