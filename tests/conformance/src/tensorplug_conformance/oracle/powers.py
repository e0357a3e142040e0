"""References for exponentials, logarithms, reciprocals and roots, in wide arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import epsilon, kind_of
from tensorplug_conformance.oracle.elementwise import inexact

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


_TWO = np.longdouble(2)
_TEN = np.longdouble(10)


def _expm1(z: Array) -> Array:
    if z.dtype.kind != "c":
        return np.asarray(np.expm1(z))
    # e**x (cos y + i sin y) - 1, with cos y - 1 as a square, so that nothing cancels near 0.
    x, y = z.real, z.imag
    real = np.expm1(x) * np.cos(y) - 2 * np.sin(y / 2) ** 2
    return np.asarray(real + 1j * (np.exp(x) * np.sin(y)))


def _log1p(z: Array) -> Array:
    if z.dtype.kind != "c":
        return np.asarray(np.log1p(z))
    x, y = z.real, z.imag
    return np.asarray(np.log1p(2 * x + x * x + y * y) / 2 + 1j * np.arctan2(y, 1 + x))


expm1 = inexact(_expm1)
log1p = inexact(_log1p)
log2 = inexact(lambda z: np.log2(z) if kind_of(z.dtype) == "f" else np.log(z) / np.log(_TWO))
log10 = inexact(lambda z: np.log10(z) if kind_of(z.dtype) == "f" else np.log(z) / np.log(_TEN))
reciprocal = inexact(lambda z: 1 / z)
rsqrt = inexact(lambda z: 1 / np.sqrt(z))
hypot = inexact(np.hypot)


def log_add_exp(a: Array, b: Array) -> Bounded:
    """ln(e**a + e**b), which may cancel: then the bound is an eps of the larger operand."""
    with np.errstate(all="ignore"):
        value = np.asarray(np.logaddexp(wide(a), wide(b)))
        size = np.abs(np.fmax(wide(a), wide(b))) + 1
        return Bounded(value, 2 * size * epsilon(a))
