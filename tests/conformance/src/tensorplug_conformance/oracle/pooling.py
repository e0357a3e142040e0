"""References for pooling over NHWC tensors: tap by tap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.corpus import wide
from tensorplug_conformance.oracle.reduction import epsilon, levels
from tensorplug_conformance.oracle.windows import Axis, both, pair, taps
from tensorplug_conformance.tables import Bounded

if TYPE_CHECKING:
    from tensorplug_conformance.tables import Array


def max_pool(x: Array, **options: Any) -> Array:
    """The largest of each window; a NaN wins, padding never does."""
    return _winners(x, options)[0]


def max_pool_grad(dy: Array, input: Array, output: Array, **options: Any) -> Bounded:
    """dy goes to the first largest element of its window, in row-major order."""
    del output  # the winner is found again
    _, winner = _winners(input, options)
    out = np.zeros(input.shape, dtype=np.longdouble)
    size = out.copy()
    pulled = wide(dy)
    for at, (_, _, (p, row), (q, column)) in enumerate(taps(*_axes(input, options))):
        part = np.where(winner[:, p, q, :] == at, pulled[:, p, q, :], 0)
        out[:, row, column, :] += part
        size[:, row, column, :] += np.abs(part)
    count = pair(options["filter_size"])
    return Bounded(out, size * levels(count[0] * count[1]) * epsilon(dy))


def _winners(x: Array, options: dict[str, Any]) -> tuple[Array, Array]:
    """Return the first largest of each window, and which tap it is: the first NaN, if any."""
    height, width = _axes(x, options)
    shape = (x.shape[0], height.out, width.out, x.shape[3])
    value, winner = np.zeros(shape, dtype=x.dtype), np.full(shape, -1)
    for at, (_, _, (p, row), (q, column)) in enumerate(taps(height, width)):
        tap, best = x[:, row, column, :], value[:, p, q, :]
        with np.errstate(invalid="ignore"):
            beats = (winner[:, p, q, :] < 0) | (~_nan(best) & ((tap > best) | _nan(tap)))
        value[:, p, q, :] = np.where(beats, tap, best)
        winner[:, p, q, :] = np.where(beats, at, winner[:, p, q, :])
    return value, winner


def _axes(x: Array, options: dict[str, Any]) -> tuple[Axis, Axis]:
    rest = {name: value for name, value in options.items() if name != "filter_size"}
    return both((x.shape[1], x.shape[2]), pair(options["filter_size"]), **rest)


def _nan(x: Array) -> Array:
    return np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, dtype=bool)
