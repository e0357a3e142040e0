"""References for activation functions, each with a bound on what rounding may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug_conformance.corpus import wide
from tensorplug_conformance.oracle.elementwise import arithmetic
from tensorplug_conformance.oracle.reduction import epsilon, levels
from tensorplug_conformance.tables import Bounded

if TYPE_CHECKING:
    from tensorplug_conformance.tables import Array

relu = arithmetic(
    lambda x: max(x, 0),
    lambda x: np.where(np.isnan(x), np.nan, np.where(x > 0, x, 0)),
    inputs=1,
)


def sigmoid(x: Array) -> Array:
    """1 / (1 + e**-x)."""
    z = wide(x)
    with np.errstate(all="ignore"):
        if x.dtype.kind == "c":
            return np.asarray(1 / (1 + np.exp(-z)))
        small = np.exp(-np.abs(z))
        return np.asarray(np.where(z >= 0, 1 / (1 + small), small / (1 + small)))


def softmax(logits: Array, *, dim: int = -1) -> Bounded:
    """e**x / sum(e**x) along one axis.

    Rounding x - max costs half an eps of that difference, relative to the result; exp a few
    ulp; the sum log2(n) eps; the quotient some more.
    """
    with np.errstate(all="ignore"):
        below, terms, n = _shifted(logits, dim)
        value = terms / terms.sum(axis=dim, keepdims=True)
        slack = np.where(np.isfinite(below), np.abs(below), 0) + levels(n) + 8
        return Bounded(value, value * slack * epsilon(logits))


def log_softmax(logits: Array, *, axis: int = -1) -> Bounded:
    """x - max - log(sum(e**(x - max))) along one axis."""
    with np.errstate(all="ignore"):
        below, terms, n = _shifted(logits, axis)
        log_sum = np.log(terms.sum(axis=axis, keepdims=True))
        slack = np.where(np.isfinite(below), np.abs(below), 0) + np.abs(log_sum) + levels(n) + 4
        return Bounded(below - log_sum, slack * epsilon(logits))


def _shifted(logits: Array, axis: int) -> tuple[Array, Array, int]:
    x = wide(logits)
    if x.size == 0:
        return x, np.exp(x), 1
    below = x - x.max(axis=axis, keepdims=True)
    return below, np.exp(below), x.shape[axis]
