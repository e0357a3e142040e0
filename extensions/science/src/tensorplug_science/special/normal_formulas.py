"""The scaled complement of the error function, and inverses.

erfcx has the pieces of erfc, which the core has. The rational functions of the inverse normal
distribution function are our own, in the variables of M. J. Wichura's algorithm AS 241 (Applied
Statistics 37, 1988): a central one, and two in the square root of -ln p. Each interpolates at
Chebyshev nodes of its interval, in arithmetic of 50 digits, and is accurate to 1e-15.
"""

from __future__ import annotations

import math
from typing import Any, Final

from tensorplug.algorithms import complement_formulas as complement
from tensorplug.algorithms import high_half, ratio

# ndtri(0.5 + q) / q for 0.180625 - q**2, |q| <= 0.425
_NDTRI_CENTRAL: Final = (
    (
        3.3871328727963665,
        148.75654077063152,
        2548.2248573022625,
        21627.48116049056,
        95692.73551269759,
        213550.16248438213,
        214247.3801984238,
        74060.81462563902,
        3907.007639023816,
    ),
    (
        1.0,
        46.92338689522055,
        871.2838940641986,
        8176.878340636071,
        41169.98166790856,
        109244.70555458817,
        140376.82723612545,
        72342.69749284587,
        9398.46451720659,
    ),
)
# -ndtri(e**-r**2) for r - 1.6, r in [1.6, 5]
_NDTRI_TAIL: Final = (
    (
        1.4234371107496835,
        4.658671152911319,
        5.895441930593747,
        3.867306448959962,
        1.4607583582995678,
        0.3281996025557107,
        0.04265573683356803,
        0.0028477028904769918,
        7.021355815515727e-05,
    ),
    (
        1.0,
        2.073096479855932,
        1.7409835549495896,
        0.7681616354872175,
        0.19254621603461666,
        0.02720737081022722,
        0.0019346295319642268,
        4.964417089088835e-05,
        3.604856526953905e-11,
    ),
)
# -ndtri(e**-r**2) for r - 5, r in [5, 27.5]
_NDTRI_FAR: Final = (
    (
        6.657904643501098,
        5.627986827910051,
        1.914429843166566,
        0.3367877061817572,
        0.032766966251131555,
        0.0017471720750320257,
        4.726867882717365e-05,
        5.256163437646542e-07,
        7.117026375843684e-10,
        -1.0067116111324603e-11,
    ),
    (
        1.0,
        0.6244949083424103,
        0.15095008824034892,
        0.01785369723850111,
        0.001078676424723275,
        3.1582565143561225e-05,
        3.689489193577084e-07,
        5.388291866377266e-10,
        -7.118511947808531e-12,
    ),
)
_CENTRAL_REACH: Final = 0.425  # of p - 0.5


def erfcx(xp: Any, x: Any) -> Any:
    """Return ``exp(x**2) * erfc(x)``."""
    size = xp.abs(x)
    square = x * x
    about_1 = complement.complement_about_1(size)
    central = xp.where(x < 0.0, 2.0 - about_1, about_1)
    central = xp.exp(square) * xp.where(
        size < complement.NEAR, complement.complement_near_0(xp, x), central
    )
    cut = xp.where(size > complement.LARGE, complement.LARGE, size)
    high = high_half(cut)
    power = xp.exp(high * high) * xp.exp((cut - high) * (cut + high))
    tail = complement.scaled_tail(xp, size, 1.0)
    far = xp.where(x < 0.0, 2.0 * power - tail, tail)
    return xp.where(size < complement.AROUND_1, central, far)


def exp_minus_half_square(xp: Any, x: Any) -> Any:
    """Return ``exp(-x**2 / 2)``, accurate where the exponent is large."""
    cut = xp.where(xp.abs(x) > 2.0 * complement.LARGE, 2.0 * complement.LARGE, x)
    high = high_half(cut)
    return xp.exp(-0.5 * (high * high)) * xp.exp(0.5 * (high - cut) * (high + cut))


def ndtri(xp: Any, p: Any) -> Any:
    """Return x at which the normal distribution function is ``p``."""
    q = p - 0.5
    tail = _quantile(xp, xp.where(q < 0.0, p, 1.0 - p))
    far = xp.where(q < 0.0, -tail, tail)
    return xp.where(xp.abs(q) <= _CENTRAL_REACH, _central(q), far)


def erfinv(xp: Any, x: Any) -> Any:
    """Return y with ``erf(y) = x``."""
    q = x * 0.5
    tail = _quantile(xp, 0.5 - xp.abs(q))
    far = xp.where(q < 0.0, -tail, tail)
    return xp.where(xp.abs(q) <= _CENTRAL_REACH, _central(q), far) * math.sqrt(0.5)


def _central(q: Any) -> Any:
    return q * ratio(_NDTRI_CENTRAL, _CENTRAL_REACH**2 - q * q)


def _quantile(xp: Any, p: Any) -> Any:
    """Return -ndtri(p) for p below 0.075; infinity at 0."""
    root = xp.sqrt(-xp.log(p))
    found = xp.where(root < 5.0, ratio(_NDTRI_TAIL, root - 1.6), ratio(_NDTRI_FAR, root - 5.0))
    return xp.where(p == 0.0, math.inf, found)
