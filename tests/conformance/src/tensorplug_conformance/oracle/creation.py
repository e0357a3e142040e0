"""References for tensors made from nothing but attributes."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.corpus import wide
from tensorplug_conformance.tables import Bounded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_conformance.tables import Array, Reference


def fill(*, shape: Sequence[int], value: Any, dtype: str) -> Array:
    """One number everywhere."""
    with np.errstate(over="ignore"):
        out = np.array([value] * prod(shape)).astype(dtype).reshape(tuple(shape))
    return out if out.dtype.kind not in "fc" else wide(out)


def range_(*, start: float, stop: float, step: float = 1, dtype: str = "float32") -> Reference:
    """``start + i * step`` below ``stop``, in exact fractions; one rounding per operation."""
    count = max(0, ceil((Fraction(stop) - Fraction(start)) / Fraction(step)))
    target = np.dtype(dtype)
    if isinstance(start, int) and isinstance(step, int):
        exact = [start + i * step for i in range(count)]
        if target.kind in "iu":
            return np.array(exact, dtype=target)
        return np.array(exact, dtype=np.longdouble)  # small enough to be exact
    value = [float(Fraction(start) + i * Fraction(step)) for i in range(count)]
    sizes = np.array([abs(start) + abs(i * step) for i in range(count)], dtype=np.longdouble)
    bound = sizes * np.longdouble(np.finfo(target).eps)
    return Bounded(np.array(value, dtype=np.longdouble), bound)


def constant_like(number: int) -> Any:
    """Return the reference of ZerosLike or OnesLike."""

    def reference(x: Array) -> Array:
        out = np.array([number] * x.size, dtype=x.dtype).reshape(x.shape)
        return out if out.dtype.kind not in "fc" else wide(out)

    return reference
