"""The logarithm of the gamma function and its derivatives.

The rational functions are our own. Each interpolates at Chebyshev nodes of its interval, in
arithmetic of 50 digits, and is accurate to 1e-16. Where a function crosses 0, at 1 and 2 or at
the root of digamma, the zero is a factor. From 3 (digamma: 2) on, the functions use Stirling's
formula with a rational remainder in ``1 / x**2``. Negative arguments are reflected (DLMF 5.5.3,
5.5.4, 5.15.6).
"""

from __future__ import annotations

import math
from typing import Any, Final

from tensorplug.algorithms import polynomial, ratio
from tensorplug_science.special.evaluation import distance_to_whole

# lgamma(1 + z) / z for z + 0.5 in [0, 1]
_LGAMMA_1: Final = (
    (
        -1.1447298858494002,
        -6.036852433179292,
        -11.071743532729553,
        -7.0565876173172715,
        1.7451925115472506,
        3.9217029445826674,
        1.494339777573659,
        0.184772442249133,
        0.005207847626940318,
    ),
    (
        1.0,
        6.704125408439778,
        17.812474041463616,
        23.926263908044454,
        17.200166325411036,
        6.465463047500658,
        1.1546678850895615,
        0.07895344318154292,
        0.001176382838169898,
    ),
)
# lgamma(2 + z) / z for z + 0.5 in [0, 1.5]
_LGAMMA_2: Final = (
    (
        0.24156447527049044,
        0.9078417124510763,
        1.1268231346383526,
        0.6379127842212364,
        0.1776299389339558,
        0.023404465314382093,
        0.001237950389361024,
        1.6548470328136936e-05,
    ),
    (
        1.0,
        2.060289325696421,
        1.6405629081143676,
        0.6362365897087857,
        0.12450503481363638,
        0.01150451649996123,
        0.0004117351419168689,
        3.2849687731160605e-06,
    ),
)
# x (lgamma(x) - (x - 0.5) (ln x - 1) - ln(2 pi) / 2 + 0.5) for 1 / x**2, x >= 3
_LGAMMA_FAR: Final = (
    (
        0.08333333333333333,
        1.190372606351185,
        4.904304971159221,
        6.6878298247072125,
        2.5590246849884033,
        0.13367152784937786,
    ),
    (
        1.0,
        14.317804609547542,
        59.31939599804327,
        82.10205390891409,
        32.97225380732656,
        2.223301837290134,
    ),
)
# digamma(1 + z) / (1 + z - root) for z in [0, 1]
_DIGAMMA_NEAR: Final = (
    (
        1.2503801375034054,
        1.8675925104074453,
        0.9711327526262392,
        0.21631407251432455,
        0.01996408274151926,
        0.0005811135063985677,
        1.0894678528383955e-06,
    ),
    (
        1.0,
        2.1771665986671342,
        1.6630736963665909,
        0.5710455727133128,
        0.09111902253303285,
        0.006100975692434821,
        0.00012043151172286901,
    ),
)
# x**2 (ln x - 1 / (2 x) - digamma(x)) for 1 / x**2, x >= 2
_DIGAMMA_FAR: Final = (
    (
        0.08333333333333333,
        2.4183499054359583,
        24.517392564281135,
        109.93440558644001,
        227.645704272173,
        206.39986181342957,
        68.65006570199887,
        4.847778424975935,
        -0.06270991569724575,
    ),
    (
        1.0,
        29.12019886523149,
        297.07311161028167,
        1347.5835020612358,
        2853.725563734089,
        2710.45973002206,
        1005.6984680984084,
        101.23908575045233,
    ),
)
# The positive root of digamma less 1: what float32 holds of it, and the rest.
_ROOT: Final = (0.4616321325302124, 1.2438149938918909e-08)
_STIRLING: Final = 0.5 * math.log(2.0 * math.pi) - 0.5
# Those of 2, 4, ..., 16.
BERNOULLI: Final = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def lgamma(xp: Any, x: Any) -> Any:
    """Return ``ln |gamma(x)|``."""
    size = xp.abs(x)
    mirrored = x < -0.5
    y = xp.where(mirrored, size, x)
    right = lgamma_right(xp, y)
    off = xp.abs(distance_to_whole(xp, size))
    reflected = -xp.log(size * (xp.sin(off * math.pi) * (1.0 / math.pi))) - right
    pole = (off == 0.0) | (size == math.inf)
    return xp.where(mirrored, xp.where(pole, math.inf, reflected), right)


def lgamma_right(xp: Any, y: Any) -> Any:
    """Return ``lgamma(y)`` for y >= -1/2; all of its branches have finite slopes for y > 0."""
    log_y = xp.log(xp.abs(y))
    below = y < 0.5
    z = xp.where(below, y, y - 1.0)
    first = lgamma_of_1_plus(z)
    first = xp.where(below, first - log_y, first)
    second = (y - 2.0) * ratio(_LGAMMA_2, y - 1.5)
    far = (y - 0.5) * (log_y - 1.0) + _STIRLING + stirling_remainder(y)
    return xp.where(y < 1.5, first, xp.where(y < 3.0, second, far))


def lgamma_of_1_plus(z: Any) -> Any:
    """Return ``lgamma(1 + z)`` for |z| <= 1/2, accurate also near 0."""
    return z * ratio(_LGAMMA_1, z + 0.5)


def stirling_remainder(x: Any) -> Any:
    """Return ``lgamma(x)`` less Stirling's formula, for x >= 3."""
    return ratio(_LGAMMA_FAR, 1.0 / (x * x)) / x


def digamma(xp: Any, x: Any) -> Any:
    """Return the derivative of ``lgamma``."""
    mirrored = x < 0.0
    y = xp.where(mirrored, 1.0 - x, x)
    below = y < 1.0
    z = xp.where(below, y, y - 1.0)
    near = ((z - _ROOT[0]) - _ROOT[1]) * ratio(_DIGAMMA_NEAR, z)
    near = xp.where(below, near - 1.0 / y, near)
    w = 1.0 / (y * y)
    far = xp.log(y) - 0.5 / y - w * ratio(_DIGAMMA_FAR, w)
    right = xp.where(y < 2.0, near, far)
    return xp.where(mirrored, right + _pi_cotangent(xp, -x), right)


def _pi_cotangent(xp: Any, size: Any) -> Any:
    """Return ``pi * cot(pi * size)``, and NaN at the poles, where its sign changes."""
    angle = distance_to_whole(xp, size) * math.pi
    return xp.where(angle == 0.0, math.nan, math.pi * xp.cos(angle) / xp.sin(angle))


def polygamma(xp: Any, x: Any, n: int) -> Any:
    """Return the n-th derivative of ``digamma``, n >= 1."""
    mirrored = x < 0.0
    total = _sum_powers(xp.where(mirrored, 1.0 - x, x), n)
    angle = distance_to_whole(xp, -x) * math.pi
    cotangent = -xp.cos(angle) / xp.sin(angle)
    bent = polynomial(_cotangent_derivative(n), cotangent) * (-math.pi) ** (n + 1)
    pole = math.inf if n % 2 else -math.inf  # from above: for even n the sides differ in sign
    left = xp.where(angle == 0.0, pole, bent - total)
    return xp.where(mirrored, left, total if n % 2 else -total)


def _cotangent_derivative(n: int) -> tuple[float, ...]:
    """Return the polynomial in cot(u) that is the n-th derivative of ``-cot(u)``, up to sign.

    The derivative of c = cot(u) is -(1 + c**2), so each step takes P to (1 + c**2) P'.
    """
    coefficients = [0, 1]
    for _ in range(n):
        slope = [power * value for power, value in enumerate(coefficients)][1:]
        coefficients = [
            low + high for low, high in zip([*slope, 0, 0], [0, 0, *slope], strict=True)
        ]
    return tuple(map(float, coefficients))


def _sum_powers(y: Any, n: int) -> Any:
    """Return ``n! * zeta(n + 1, y)`` for y >= 0: terms of the series, and Euler-Maclaurin's rest.

    DLMF 25.11.28. Each term is a power of ``scale / y``, so that n! does not overflow.
    """
    scale = math.exp(math.lgamma(n + 1.0) / (n + 1))
    count = 9 + n
    a = y + float(count)
    rest = [1.0 / n]
    rising = 1.0
    for j, bernoulli in enumerate(BERNOULLI, 1):
        rising *= n + 2 * j - 1
        rest.append(bernoulli * rising / math.factorial(2 * j))
        rising *= n + 2 * j
    inverse = 1.0 / a
    total = _power(scale * inverse, n) * scale
    total = total * (polynomial(tuple(rest), inverse * inverse) + 0.5 * inverse)
    for k in reversed(range(count)):
        total = total + _power(scale / (y + float(k)), n + 1)
    return total


def _power(base: Any, exponent: int) -> Any:
    """Return a whole power >= 1 by squaring."""
    half = base if exponent < 2 else _power(base, exponent // 2)
    if exponent == 1:
        return base
    square = half * half
    return square * base if exponent % 2 else square
