"""References for convolution: one multiplication after another, no im2col, on any spatial axes.

``sums`` says how channels combine: all with all, or each with its own filters.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import epsilon
from tensorplug_conformance.oracle.nn.windows import Axis, all_axes, places
from tensorplug_conformance.oracle.reduction import levels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_conformance.case import Array

FULL = ("...c,co->...o", "...o,co->...c", "nc,no->co")
DEPTHWISE = ("...c,cm->...cm", "...cm,cm->...c", "nc,ncm->cm")


def forward(x: Array, filter: Array, sums: tuple[str, str, str], **options: Any) -> Bounded:
    """``out[n, p, o] = sum x[n, p*s + i*d, c] * filter[i, c, o]`` for positions p and taps i."""
    last, kernel = channels_last(wide(x), options), wide(filter)
    axes = _axes(last.shape, filter.shape, options)
    channels = kernel.shape[-1:] if sums is FULL else kernel.shape[-2:]
    out = np.zeros((len(x), *(axis.out for axis in axes), *channels), dtype=np.longdouble)
    size = out.copy()
    for tap, positions, elements in places(axes):
        out[positions] += np.einsum(sums[0], last[elements], kernel[tap])
        size[positions] += np.einsum(sums[0], np.abs(last[elements]), np.abs(kernel[tap]))
    n = math.prod(filter.shape[:-2]) * (filter.shape[-2] if sums is FULL else 1)
    flat = (*out.shape[: 1 + len(axes)], math.prod(channels))
    return _bounded(out.reshape(flat), size.reshape(flat), n, x, options)


def backprop_input(
    dy: Array,
    filter: Array,
    sums: tuple[str, str, str],
    *,
    input_shape: Sequence[int],
    **options: Any,
) -> Bounded:
    """The transpose in x: every product goes back to the position of its x."""
    cotangent, kernel = _cotangent(dy, filter.shape, sums, options), wide(filter)
    shape = channels_last_shape(tuple(input_shape), options)
    axes = _axes(shape, filter.shape, options)
    out = np.zeros(shape, dtype=np.longdouble)
    size = out.copy()
    for tap, positions, elements in places(axes):
        # One tap touches no position twice, so adding through an index loses nothing.
        out[elements] += np.einsum(sums[1], cotangent[positions], kernel[tap])
        size[elements] += np.einsum(sums[1], np.abs(cotangent[positions]), np.abs(kernel[tap]))
    return _bounded(out, size, math.prod(filter.shape[:-2]) * filter.shape[-1], dy, options)


def backprop_filter(
    x: Array,
    dy: Array,
    sums: tuple[str, str, str],
    *,
    filter_shape: Sequence[int],
    **options: Any,
) -> Bounded:
    """The transpose in the filter."""
    last, cotangent = channels_last(wide(x), options), _cotangent(dy, filter_shape, sums, options)
    axes = _axes(last.shape, tuple(filter_shape), options)
    out = np.zeros(tuple(filter_shape), dtype=np.longdouble)
    size = out.copy()
    for tap, positions, elements in places(axes):
        taken, dys = last[elements], cotangent[positions]
        taken, dys = (array.reshape(-1, *array.shape[1 + len(axes) :]) for array in (taken, dys))
        out[tap] += np.einsum(sums[2], taken, dys)
        size[tap] += np.einsum(sums[2], np.abs(taken), np.abs(dys))
    return _bounded(out, size, dy.size // max(1, filter_shape[-1]), x, {})


def conv2d(x: Array, filter: Array, **options: Any) -> Bounded:
    """All channels with all; the same serves three dimensions."""
    return forward(x, filter, FULL, **options)


def conv2d_backprop_input(dy: Array, filter: Array, **options: Any) -> Bounded:
    return backprop_input(dy, filter, FULL, **options)


def conv2d_backprop_filter(x: Array, dy: Array, **options: Any) -> Bounded:
    return backprop_filter(x, dy, FULL, **options)


def depthwise(x: Array, filter: Array, **options: Any) -> Bounded:
    """Each channel with filters of its own."""
    return forward(x, filter, DEPTHWISE, **options)


def depthwise_backprop_input(dy: Array, filter: Array, **options: Any) -> Bounded:
    return backprop_input(dy, filter, DEPTHWISE, **options)


def depthwise_backprop_filter(x: Array, dy: Array, **options: Any) -> Bounded:
    return backprop_filter(x, dy, DEPTHWISE, **options)


def _axes(x: Sequence[int], filter: Sequence[int], options: dict[str, Any]) -> tuple[Axis, ...]:
    return all_axes(x[1:-1], filter[:-2], **{"data_format": "NHWC", **options})


def channels_first(options: dict[str, Any]) -> bool:
    """Return whether the channels come before the spatial axes."""
    return not str(options.get("data_format", "NHWC")).endswith("C")


def channels_last(x: Array, options: dict[str, Any]) -> Array:
    """Return ``x`` with its channels on the last axis."""
    return np.moveaxis(x, 1, -1) if channels_first(options) else x


def channels_last_shape(shape: tuple[int, ...], options: dict[str, Any]) -> tuple[int, ...]:
    """Return ``shape`` with the channels last."""
    return (shape[0], *shape[2:], shape[1]) if channels_first(options) else shape


def _cotangent(dy: Array, filter: Sequence[int], sums: Any, options: dict[str, Any]) -> Array:
    last = channels_last(wide(dy), options)
    return last if sums is FULL else last.reshape(*last.shape[:-1], *filter[-2:])


def _bounded(out: Array, size: Array, n: int, like: Array, options: dict[str, Any]) -> Bounded:
    bound = size * (levels(n) + 1) * epsilon(like)
    if channels_first(options):
        return Bounded(np.moveaxis(out, -1, 1), np.moveaxis(bound, -1, 1))
    return Bounded(out, bound)
