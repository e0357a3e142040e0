"""References for tensors made from nothing but attributes."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, prod, trunc
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import computing, finfo, kind_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_conformance.case import Array, Reference


def fill(*, shape: Sequence[int], value: Any, dtype: str) -> Array:
    """One number everywhere."""
    if dtype == "string":
        return np.full(tuple(shape), value, dtype=np.dtypes.StringDType())
    with np.errstate(over="ignore"):
        out = np.array([value] * prod(shape)).astype(dt.of(dtype).numpy).reshape(tuple(shape))
    return out if kind_of(out.dtype) not in "fc" else wide(out)


def range_(*, start: float, stop: float, step: float = 1, dtype: str = "float32") -> Reference:
    """``start + i * step`` below ``stop``, in exact fractions; one rounding per operation.

    Integers lose what is behind the point.
    """
    if step == 1 and stop < start:
        step = -1
    count = max(0, ceil((Fraction(stop) - Fraction(start)) / Fraction(step)))
    target = dt.of(dtype).numpy
    if isinstance(start, int) and isinstance(step, int):
        exact = [start + i * step for i in range(count)]
        if target.kind in "iu":
            return np.array(exact, dtype=target)
        return np.array(exact, dtype=np.longdouble)  # small enough to be exact
    fractions = [Fraction(start) + i * Fraction(step) for i in range(count)]
    if target.kind in "iu":
        return np.array(list(map(trunc, fractions)), dtype=target)
    value = list(map(float, fractions))
    sizes = np.array([abs(start) + abs(i * step) for i in range(count)], dtype=np.longdouble)
    bound = sizes * np.longdouble(finfo(computing(target)).eps)
    return Bounded(np.array(value, dtype=np.longdouble), bound)


def constant_like(number: int) -> Any:
    """Return the reference of ZerosLike or OnesLike."""

    def reference(x: Array) -> Array:
        out = np.array([number] * x.size, dtype=x.dtype).reshape(x.shape)
        return out if kind_of(out.dtype) not in "fc" else wide(out)

    return reference


def linspace(
    *, start: Any, stop: Any, num: int, endpoint: bool = True, dtype: str = "float32"
) -> Reference:
    """``start + i * (stop - start) / steps``; rounding of the share, two products and the sum."""
    target = dt.of(dtype).numpy
    broad = np.clongdouble if target.kind == "c" else np.longdouble
    steps = max(num - 1 if endpoint else num, 1)
    ends = [broad(bound) for bound in (start, stop)]
    share = np.arange(num, dtype=np.longdouble) / steps
    value = np.array(ends[0] * (1 - share) + ends[1] * share, dtype=broad)
    about = float(finfo(computing(target)).eps) * (abs(ends[0]) + abs(ends[1]))
    bound = np.full(num, 2 * about, dtype=np.longdouble)
    bound[share == 0] = 0
    bound[share == 1] = 0
    rounded = value.astype(target).astype(broad)
    exact = (share == 0) | (share == 1)
    return Bounded(np.where(exact, rounded, value), bound)


def eye(*, n_rows: int, n_cols: int | None = None, k: int = 0, dtype: str = "float32") -> Array:
    """``out[i, j] = 1`` where ``j - i == k``."""
    out = np.zeros((n_rows, n_rows if n_cols is None else n_cols), dt.of(dtype).numpy)
    for i, j in np.ndindex(out.shape):
        if j - i == k:
            out[i, j] = 1
    return out
