"""References for dilation: tap by tap, the winner of each window kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import epsilon, kind_of
from tensorplug_conformance.oracle.nn.windows import all_axes, places
from tensorplug_conformance.oracle.reduction import levels

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array
    from tensorplug_conformance.oracle.nn.windows import Axis


def dilation2d(x: Array, filter: Array, **options: Any) -> Array:
    """The largest sum in each window, rounded or wrapped as the dtype does; NaN wins."""
    return _winners(x, filter, options)[0]


def backprop_input(x: Array, filter: Array, dy: Array, **options: Any) -> Bounded:
    """dy goes to the element of the first largest sum of its window, in row-major order."""
    _, winner = _winners(x, filter, options)
    out = np.zeros(x.shape, dtype=np.longdouble)
    size, cotangent = out.copy(), wide(dy)
    for at, (_, positions, elements) in enumerate(places(_axes(x, filter, options))):
        part = np.where(winner[positions] == at, cotangent[positions], 0)
        out[elements] += part
        size[elements] += np.abs(part)
    return Bounded(out, size * levels(filter.shape[0] * filter.shape[1]) * epsilon(dy))


def backprop_filter(x: Array, filter: Array, dy: Array, **options: Any) -> Bounded:
    """dy goes to the tap of the first largest sum of its window."""
    _, winner = _winners(x, filter, options)
    out = np.zeros(filter.shape, dtype=np.longdouble)
    size, cotangent = out.copy(), wide(dy)
    for at, (tap, positions, _) in enumerate(places(_axes(x, filter, options))):
        part = np.where(winner[positions] == at, cotangent[positions], 0)
        out[tap] += part.sum(axis=(0, 1, 2))
        size[tap] += np.abs(part).sum(axis=(0, 1, 2))
    return Bounded(out, size * levels(dy[..., :1].size) * epsilon(dy))


def _winners(x: Array, filter: Array, options: dict[str, Any]) -> tuple[Array, Array]:
    """Return the first largest sum of each window, and the number of its tap: the first NaN's."""
    axes = _axes(x, filter, options)
    shape = (x.shape[0], *(axis.out for axis in axes), x.shape[3])
    lowest: Any = -np.inf if kind_of(x.dtype) == "f" else np.iinfo(x.dtype).min
    value, winner = np.full(shape, lowest, dtype=x.dtype), np.full(shape, -1)
    for at, (tap, positions, elements) in enumerate(places(axes)):
        with np.errstate(all="ignore"):
            total, best = x[elements] + filter[tap], value[positions]
            beats = (winner[positions] < 0) | ((total > best) | _nan(total)) & ~_nan(best)
        value[positions] = np.where(beats, total, best)
        winner[positions] = np.where(beats, at, winner[positions])
    return value, winner


def _axes(x: Array, filter: Array, options: dict[str, Any]) -> tuple[Axis, ...]:
    return all_axes(x.shape[1:3], filter.shape[:2], **options)


def _nan(x: Array) -> Array:
    return np.isnan(x) if kind_of(x.dtype) == "f" else np.zeros(x.shape, dtype=bool)
