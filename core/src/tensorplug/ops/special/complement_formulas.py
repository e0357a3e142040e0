"""The complement of the error function, for NumPy's arrays and tensors alike.

``xp`` holds the functions that a formula calls: NumPy itself, or ours. The coefficients are those
of ``error_function``: from 1.25 on, x erfc(x) is exp(-x**2 - 0.5625 + R(1 / x**2)), so that
x erfcx(x), which lacks exp(-x**2), is simple.
"""

from __future__ import annotations

from typing import Any, Final

from tensorplug.ops.elementwise import error_function
from tensorplug.ops.special.evaluation import high_half, ratio

LARGE: Final = 30.0  # exp(-30**2) is 0, exp(30**2) infinite
NEAR, AROUND_1, MIDDLE = error_function.ENDS


def erfc(xp: Any, x: Any) -> Any:
    """Return ``1 - erf(x)``, accurate also where it is small."""
    size = xp.abs(x)
    cut = xp.where(size > LARGE, LARGE, size)
    high = high_half(cut)
    tail = scaled_tail(xp, cut, xp.exp((high - cut) * (high + cut)))
    tail = xp.exp(-high * high) * tail
    far = xp.where(size < AROUND_1, complement_about_1(size), tail)
    return xp.where(size < NEAR, complement_near_0(xp, x), xp.where(x < 0.0, 2.0 - far, far))


def complement_near_0(xp: Any, x: Any) -> Any:
    """Return ``1 - erf(x)`` for |x| below ``NEAR``."""
    product = x * ratio(error_function.NEAR_0, x * x)
    return xp.where(x < 0.25, 1.0 - (x + product), 0.5 - ((x - 0.5) + product))


def complement_about_1(size: Any) -> Any:
    """Return ``1 - erf(size)`` from ``NEAR`` to ``AROUND_1``."""
    return (1.0 - error_function.AT_1) - ratio(error_function.NEAR_1, size - 1.0)


def scaled_tail(xp: Any, size: Any, factor: Any) -> Any:
    """Return ``factor * erfcx(size)`` from 1.25 on."""
    w = 1.0 / (size * size)
    near, far = ratio(error_function.MIDDLE, w), ratio(error_function.FAR, w)
    return factor * xp.exp(xp.where(size < MIDDLE, near, far) - 0.5625) / size
