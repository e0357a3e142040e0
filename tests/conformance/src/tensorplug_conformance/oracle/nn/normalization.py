"""References for normalization, with bounds on what rounding may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import epsilon
from tensorplug_conformance.oracle.reduction import levels

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def batch_norm(
    x: Array,
    scale: Array | None,
    offset: Array | None,
    mean: Array,
    variance: Array,
    *,
    variance_epsilon: float = 0.001,
) -> Bounded:
    """Standard scores by the given statistics, scaled and shifted.

    The difference, the sum with epsilon, the root, two quotients or products and the last sum
    round once each.
    """
    with np.errstate(all="ignore"):
        spread = wide(variance) + np.longdouble(variance_epsilon)
        factor = (1 if scale is None else wide(scale)) / spread ** np.longdouble(0.5)
        scored = (wide(x) - wide(mean)) * factor
        shift = 0 if offset is None else wide(offset)
        value = scored + shift
        # Where both terms contribute, epsilon does not bound the error of the variance.
        slack = 6 * np.abs(scored) + np.abs(value)
        return Bounded(value, np.where(np.isfinite(slack), slack, 0) * epsilon(x))


def lrn(
    x: Array,
    *,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
) -> Bounded:
    """x * n**-beta, n the sums over neighbours one by one.

    A relative error of n grows by |beta|; a power has an error of some ulp, magnified by its
    logarithm.
    """
    with np.errstate(all="ignore"):
        z = wide(x)
        n, size = _norm(z, depth_radius, bias, alpha)
        value = z * n ** np.longdouble(-beta)
        bound = np.abs(value) * _slack(x, n, size, beta)
        return Bounded(value, np.where(np.isfinite(bound), bound, 0))


def lrn_grad(
    x: Array,
    y: Array,
    dy: Array,
    *,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
) -> Bounded:
    """Every channel's effect on itself, and on each neighbour through its norm."""
    with np.errstate(all="ignore"):
        z, out, cotangent = wide(x), wide(y), wide(dy)
        n, size = _norm(z, depth_radius, bias, alpha)
        direct = cotangent * n ** np.longdouble(-beta)
        twice = 2 * np.longdouble(alpha) * np.longdouble(beta)
        terms = out * cotangent / n
        through = twice * z * _windowed(terms, depth_radius)
        reach = np.abs(twice * z) * _windowed(np.abs(terms), depth_radius)
        relative = _slack(x, n, size, beta)
        most = _windowed(np.ones_like(z) * relative, depth_radius)
        return Bounded(direct - through, np.abs(direct) * relative + reach * (most + epsilon(x)))


def _norm(z: Array, radius: int, bias: float, alpha: float) -> tuple[Array, Array]:
    """Return the norms, and the sizes of their terms."""
    total = np.longdouble(alpha) * _windowed(z * z, radius)
    return np.longdouble(bias) + total, np.abs(np.longdouble(bias)) + np.abs(total)


def _slack(x: Array, n: Array, size: Array, beta: float) -> Any:
    """Return the relative error allowed for n**-beta times a factor."""
    of_n = size / np.abs(n) * (levels(x.shape[-1] if x.ndim else 1) + 3)
    exponent = abs(beta) * np.abs(np.log(np.where(n > 0, n, 1)))
    return (abs(beta) * of_n + exponent + 8) * epsilon(x)


def _windowed(z: Array, radius: int) -> Array:
    out = np.zeros_like(z)
    channels = z.shape[-1]
    for at in range(channels):
        low, high = max(0, at - radius), min(channels, at + radius + 1)
        out[..., at] = z[..., low:high].sum(axis=-1)
    return out
