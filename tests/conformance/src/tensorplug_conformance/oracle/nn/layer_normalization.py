"""References for layer normalization, with bounds on what rounding may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import epsilon
from tensorplug_conformance.oracle.reduction import levels, normalized

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


class _Scores:
    """Standard scores of each example, and the effect on them of errors in its statistics."""

    def __init__(self, x: Array, axis: Any, offset: float) -> None:
        self.axes = normalized(axis, x.ndim)
        z = wide(x)
        self.terms = int(np.prod([x.shape[axis] for axis in self.axes], dtype=int))
        centred = z - self.mean(z)
        spread = self.mean(centred**2) + np.longdouble(offset)
        self.deviation = np.sqrt(spread)
        self.scores = centred / self.deviation
        # The mean is off by some eps of the mean size, and so is each difference from it.
        size = self.mean(np.abs(z)) * (levels(self.terms) + 1) + np.abs(z)
        self.error = size / self.deviation
        # Relative error of the deviation: half of that of the mean square, and its rounding.
        wrong = 2 * self.mean(np.abs(self.scores) * self.error) + levels(self.terms) + 4
        self.slack = self.error + np.abs(self.scores) * wrong

    def mean(self, x: Array) -> Array:
        total = x.sum(axis=self.axes, keepdims=True)
        return np.asarray(total / self.terms)


def layer_norm(
    x: Array,
    scale: Array | None,
    offset: Array | None,
    *,
    axis: Any = -1,
    epsilon: float = 1e-5,
) -> Bounded:
    """Standard scores of each example, scaled and shifted."""
    with np.errstate(all="ignore"):
        if not x.size:
            return Bounded(wide(x), np.zeros(x.shape))
        example = _Scores(x, axis, epsilon)
        by = np.longdouble(1) if scale is None else wide(scale)
        scored = example.scores * by
        value = scored if offset is None else scored + wide(offset)
        slack = example.slack * np.abs(by) + np.abs(scored) + np.abs(value)
        return Bounded(value, np.where(np.isfinite(slack), slack, 0) * _eps(x))


def layer_norm_grad(dy: Array, x: Array, *, axis: Any = -1, epsilon: float = 1e-5) -> Bounded:
    """Dy less its mean and its part along the scores, over the deviation."""
    with np.errstate(all="ignore"):
        if not x.size:
            return Bounded(wide(x), np.zeros(x.shape))
        example, cotangent = _Scores(x, axis, epsilon), wide(dy)
        z, size = example.scores, np.abs(cotangent)
        along = example.mean(z * cotangent)
        value = (cotangent - example.mean(cotangent) - z * along) / example.deviation
        steps = levels(example.terms) + 4
        # Errors of the scores count where they multiply and where they are averaged.
        slack = (
            size * 2
            + example.mean(size) * steps
            + np.abs(z) * example.mean(np.abs(z) * size * steps + example.slack * size)
            + example.slack * np.abs(along)
        ) / example.deviation
        wrong = 2 * example.mean(np.abs(z) * example.error) + steps
        bound = slack + np.abs(value) * wrong
        return Bounded(value, np.where(np.isfinite(bound), bound, 0) * _eps(x))


_eps = epsilon
