"""References for activation functions, each with a bound on what rounding may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import epsilon, finfo
from tensorplug_conformance.oracle.elementwise import arithmetic
from tensorplug_conformance.oracle.reduction import levels

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array

relu = arithmetic(
    lambda x: max(x, 0),
    lambda x: np.where(np.isnan(x), np.nan, np.where(x > 0, x, 0)),
    inputs=1,
)

relu6 = arithmetic(
    lambda x: min(max(x, 0), 6),
    lambda x: np.where(np.isnan(x), np.nan, np.where(x > 6, 6, np.where(x > 0, x, 0))),
    inputs=1,
)


def elu(x: Array) -> Array:
    """x above 0, e**x - 1 below."""
    return _two_sided(x, 1, 1)


def selu(x: Array) -> Array:
    """ELU scaled by lambda, its exponential side by lambda * alpha."""
    scale = np.longdouble("1.0507009873554804934193349852946")
    return _two_sided(x, scale, scale * np.longdouble("1.6732632423543772848170429916717"))


def _two_sided(x: Array, above: Any, below: Any) -> Array:
    z = wide(x)
    with np.errstate(all="ignore"):
        return np.asarray(np.where(z > 0, above * z, below * np.expm1(z)))


def elu_grad(dy: Array, y: Array) -> Array:
    """Dy times the slope of ELU, which is y + 1 below 0."""
    above = wide(y) >= 0
    with np.errstate(all="ignore"):
        return np.asarray(np.where(above, wide(dy), wide(dy) * (wide(y) + 1)))


def leaky_relu(x: Array, *, alpha: float = 0.2) -> Array:
    """Alpha times x below 0."""
    return prelu(x, np.asarray(alpha, np.longdouble))


def prelu(x: Array, alpha: Array) -> Array:
    """Alpha times x below 0, with broadcasting."""
    z, slope = wide(x), wide(alpha)
    with np.errstate(all="ignore"):
        return np.asarray(np.where(z < 0, slope * z, z + 0 * np.zeros(np.shape(slope))))


def softplus(x: Array) -> Array:
    """log(1 + e**x): log(e**0 + e**x)."""
    with np.errstate(all="ignore"):
        return np.asarray(np.logaddexp(wide(x), np.longdouble(0)))


def step(x: Array, *, alpha: float = 0.0) -> Array:
    """1 above 0, else alpha; NaN stays."""
    level = np.where(x > 0, 1, np.asarray(alpha).astype(x.dtype))
    return np.where(x != x, x, level).astype(x.dtype)  # noqa: PLR0124  # NaN is unlike itself


def sigmoid(x: Array) -> Array:
    """1 / (1 + e**-x)."""
    z = wide(x)
    with np.errstate(all="ignore"):
        if x.dtype.kind == "c":
            return np.asarray(1 / (1 + np.exp(-z)))
        small = np.exp(-np.abs(z))
        return np.asarray(np.where(z >= 0, 1 / (1 + small), small / (1 + small)))


def sigmoid_grad(dy: Array, x: Array) -> Array:
    """Dy over (2 cosh(x / 2))**2; where the slope is too small for the dtype, dy times 0."""
    half = wide(x) / 2
    with np.errstate(all="ignore"):
        slope = 1 / np.square(2 * np.cosh(half))
        return np.asarray(wide(dy) * np.where(slope.astype(x.dtype) == 0, 0, slope))


def softmax(logits: Array, *, dim: int = -1) -> Bounded:
    """e**x / sum(e**x) along one axis.

    Rounding x - max costs half an eps of that difference, relative to the result; exp a few
    ulp; the sum log2(n) eps; the quotient some more.
    """
    with np.errstate(all="ignore"):
        below, terms, n = _shifted(logits, dim)
        value = terms / terms.sum(axis=dim, keepdims=True)
        slack = np.where(np.isfinite(below), np.abs(below), 0) + levels(n) + 8
        least = finfo(logits.dtype).smallest_subnormal  # error of small powers
        return Bounded(value, value * slack * epsilon(logits) + 2 * least)


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
