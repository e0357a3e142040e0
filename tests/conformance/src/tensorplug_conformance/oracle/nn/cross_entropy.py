"""References for softmax's cross-entropy and its gradient, with bounds for rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import epsilon, finfo
from tensorplug_conformance.oracle.reduction import levels

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def _finite(bound: Array) -> Array:
    return np.where(np.isfinite(bound), bound, 0)


def cross_entropy(labels: Array, logits: Array) -> Bounded:
    """-sum(labels * log(softmax(logits))) along the last axis."""
    with np.errstate(all="ignore"):
        y, x = wide(labels), wide(logits)
        if not x.size:
            return Bounded(np.zeros(x.shape[:-1], x.dtype), np.zeros(x.shape[:-1]))
        below = x - x.max(axis=-1, keepdims=True)
        log_sum = np.log(np.exp(below).sum(axis=-1, keepdims=True))
        below = np.where(y == 0, 0, below)  # such classes add 0, also at -inf
        terms = np.where(y == 0, 0, y * (log_sum - below))
        n = x.shape[-1]
        # Each logarithm is off by its own size; then come the products and their sum.
        rounded = np.abs(y) * (np.abs(below) + np.abs(log_sum) + levels(n) + 4)
        slack = rounded.sum(axis=-1) + np.abs(terms).sum(axis=-1) * (levels(n) + 2)
        return Bounded(terms.sum(axis=-1), _finite(slack) * epsilon(logits))


def cross_entropy_grad(dy: Array, labels: Array, logits: Array) -> Bounded:
    """Dy times (softmax(logits) * sum(labels) - labels)."""
    with np.errstate(all="ignore"):
        y, x, cotangent = wide(labels), wide(logits), wide(dy)[..., None]
        if not x.size:
            return Bounded(x, np.zeros(x.shape))
        below = x - x.max(axis=-1, keepdims=True)
        powers = np.exp(below)
        share = powers / powers.sum(axis=-1, keepdims=True)
        whole = np.abs(y).sum(axis=-1, keepdims=True)
        value = cotangent * (share * y.sum(axis=-1, keepdims=True) - y)
        steps = np.where(share == 0, 0, np.abs(below)) + 2 * levels(x.shape[-1]) + 12
        slack = np.abs(cotangent) * (share * whole * steps + np.abs(y)) + 2 * np.abs(value)
        least = finfo(logits.dtype).smallest_subnormal  # error of small powers
        return Bounded(
            value, _finite(slack) * epsilon(logits) + (2 * np.abs(cotangent) + 1) * least
        )


def slopes(dy: Array, labels: Array, logits: Array) -> dict[str, tuple[Array, Array]]:
    """Derivatives of ``cross_entropy``, and the sizes of their terms; all arguments are wide.

    By labels: dy * log(sum(exp(logits - its own))). By logits: dy * (sum(labels) / sum(exp(logits
    - its own)) - labels).
    """
    apart = logits[..., None, :] - logits[..., :, None]  # the last axis: of the others
    most = apart.max(axis=-1, keepdims=True)
    below_most = np.log(np.exp(apart - most).sum(axis=-1))
    distance = most[..., 0]
    share = np.exp(-distance - below_most)
    whole = labels.sum(axis=-1, keepdims=True) * share
    sizes = np.abs(labels).sum(axis=-1, keepdims=True) * share * (1 + distance)
    weight = dy[..., None]
    # Beside the power of the largest score, which is 1, others are rounded away.
    entropy = distance + below_most
    by_labels = weight * entropy, np.abs(weight) * (1 + entropy)
    by_logits = weight * (whole - labels), np.abs(weight) * (sizes + np.abs(labels))
    return {"labels": by_labels, "logits": by_logits}


def _one_hot(labels: Array, logits: Array) -> Array:
    return np.asarray(labels[..., None] == np.arange(logits.shape[-1]), logits.dtype)


def sparse_cross_entropy(labels: Array, logits: Array) -> Bounded:
    """Log(sum(exp(logits - the label's score)))."""
    with np.errstate(all="ignore"):
        x = wide(logits)
        chosen = np.sum(np.where(_one_hot(labels, logits) == 1, x, 0), axis=-1, keepdims=True)
        apart = np.where(np.isinf(chosen), np.inf, x - chosen)  # a label that cannot be costs inf
        above = apart.max(axis=-1, keepdims=True)
        below = np.where(np.isinf(above), 0, apart - above)
        value = above + np.log(np.exp(below).sum(axis=-1, keepdims=True))
        slack = np.abs(above) + 2 * np.abs(value) + levels(x.shape[-1]) + 4
        return Bounded(value[..., 0], _finite(slack[..., 0]) * epsilon(logits))


def sparse_cross_entropy_grad(dy: Array, labels: Array, logits: Array) -> Bounded:
    """As with the label as one of several classes, all others 0; 0 where dy is 0."""
    ordinary = cross_entropy_grad(dy, _one_hot(labels, logits), logits)
    ignored = (dy == 0)[..., None]
    return Bounded(np.where(ignored, 0, ordinary.value), np.where(ignored, 0, ordinary.bound))


def softmax_grad(dy: Array, y: Array, *, dim: int = -1) -> Bounded:
    """Y times (dy - sum(dy * y))."""
    with np.errstate(all="ignore"):
        cotangent, weights = wide(dy), wide(y)
        if not weights.size:
            return Bounded(weights, np.zeros(weights.shape))
        terms = cotangent * weights
        total = terms.sum(axis=dim, keepdims=True)
        value = weights * (cotangent - total)
        steps = levels(weights.shape[dim]) + 3
        size = np.abs(cotangent) + np.abs(terms).sum(axis=dim, keepdims=True) * steps
        slack = np.abs(weights) * size + np.abs(value)
        return Bounded(value, _finite(slack) * epsilon(y))
