"""Arithmetic with bounds on the rounding errors of a dtype, for the oracle of ``cases``.

A number is carried in wide arithmetic, with a bound on the distance of what the same steps give
in the dtype. Each step may round by ``_ULPS`` (OpenCL's division and root are allowed that much),
and carries on the errors of what it takes. Steps overflow where the dtype does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_conformance import Bounded
from tensorplug_conformance.corpus import wide

if TYPE_CHECKING:
    from tensorplug_conformance.tables import Array


_ULPS: Final = 3


class Arithmetic:
    """The steps in one dtype."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        about: Any = np.finfo(dtype)
        self._most = wide(about.max)
        self._relative = _ULPS * wide(about.eps)
        self._absolute = _ULPS * wide(about.smallest_subnormal)

    def exact(self, value: Array) -> Near:
        """Return a number that is exact in the dtype."""
        return Near(self, wide(value), np.zeros(np.shape(value), np.longdouble))

    def constant(self, value: float) -> Near:
        """Return a number that is rounded to the dtype."""
        return self.made(np.longdouble(value), np.longdouble(0))

    def made(self, value: Any, error: Any) -> Near:
        """Return the result of a step, with an error of ``error`` before rounding."""
        with np.errstate(all="ignore"):
            value = np.where(np.abs(value) > self._most, np.copysign(np.inf, value), value)
            total = error + np.abs(value) * self._relative + self._absolute
            # What is infinite or NaN must be so exactly.
            return Near(self, value, np.where(np.isfinite(value), total, 0))


@dataclass(frozen=True)
class Near:
    """A wide value and the bound on its error."""

    within: Arithmetic
    value: Array
    error: Array

    def __add__(self, other: Near) -> Near:
        with np.errstate(all="ignore"):
            return self.within.made(self.value + other.value, self.error + other.error)

    def __sub__(self, other: Near) -> Near:
        with np.errstate(all="ignore"):
            return self.within.made(self.value - other.value, self.error + other.error)

    def __mul__(self, other: Near) -> Near:
        with np.errstate(all="ignore"):
            a, b = np.abs(self.value), np.abs(other.value)
            cross = _times(a, other.error) + _times(b, self.error) + self.error * other.error
            return self.within.made(self.value * other.value, cross)

    def __truediv__(self, other: Near) -> Near:
        return self.over(other, np.zeros(()))

    def over(self, other: Near, least: Array) -> Near:
        """Return the quotient by what is positive, and is not rounded to less than ``least``."""
        with np.errstate(all="ignore"):
            a, b = np.abs(self.value), np.abs(other.value)
            smallest = np.maximum(b - other.error, least)  # if it is 0, nothing is known
            rest = self.error + a * (other.error / b)
            error = rest / np.where(smallest > 0, smallest, np.nan)
            infinite = np.isinf(b)
            return self.within.made(self.value / other.value, np.where(infinite, 0, error))

    def sqrt(self) -> Near:
        """Return the root; an error moves that of a small number far."""
        return self._monotonic(lambda x: np.sqrt(np.where(x < 0, np.nan, x)), floor=0.0)

    def at_least(self, other: Near) -> Near:
        """Return the larger of the two."""
        with np.errstate(all="ignore"):
            value = np.maximum(self.value, other.value)
            above = np.maximum(self.value + self.error, other.value + other.error) - value
            below = value - np.maximum(self.value - self.error, other.value - other.error)
            return self.within.made(value, np.maximum(above, below))

    def __abs__(self) -> Near:
        return Near(self.within, np.abs(self.value), self.error)

    def bounded(self) -> Bounded:
        """Return it as the suite takes it."""
        return Bounded(np.asarray(self.value), np.asarray(self.error))

    def _monotonic(self, function: Any, floor: float) -> Near:
        with np.errstate(all="ignore"):
            value = function(self.value)
            above = function(self.value + self.error) - value
            below = value - function(np.maximum(self.value - self.error, floor))
            return self.within.made(value, np.maximum(above, below))


def _times(size: Array, error: Array) -> Array:
    """Return their product; what is infinite has no error to carry on."""
    return np.where(np.isfinite(size), size, 0) * error
