"""References for pooling over any number of axes: tap by tap."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import epsilon, kind_of
from tensorplug_conformance.oracle.nn.windows import all_axes, places, several
from tensorplug_conformance.oracle.reduction import levels

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array
    from tensorplug_conformance.oracle.nn.windows import Axis


def max_pool(x: Array, *, data_format: str = "", **options: Any) -> Array:
    """The largest of each window; a NaN wins, padding never does."""
    return _restored(_winners(_last(x, data_format), options)[0], data_format)


def max_pool_grad(
    dy: Array, input: Array, output: Array, *, data_format: str = "", **options: Any
) -> Bounded:
    """dy goes to the first largest element of its window, in row-major order."""
    del output  # the winner is recomputed
    x, cotangent = _last(input, data_format), wide(_last(dy, data_format))
    _, winner = _winners(x, options)
    out = np.zeros(x.shape, dtype=np.longdouble)
    size = out.copy()
    for at, (_, there, here) in enumerate(places(_axes(x, options))):
        part = np.where(winner[there] == at, cotangent[there], 0)
        out[here] += part
        size[here] += np.abs(part)
    bound = size * levels(_count(x, options)) * epsilon(dy)
    return Bounded(_restored(out, data_format), _restored(bound, data_format))


def max_pool_with_argmax(
    x: Array, *, include_batch_in_index: bool = False, **options: Any
) -> tuple[Array, Array]:
    """The largest, and its index in the flattened input; -1 over padding only."""
    value, winner = _winners(x, options)
    numbers = np.arange(x.size, dtype=np.int32).reshape(x.shape)
    if not include_batch_in_index:
        numbers = numbers % max(prod(x.shape[1:]), 1)
    result = np.full(value.shape, -1, np.int32)
    for at, (_, there, here) in enumerate(places(_axes(x, options))):
        result[there] = np.where(winner[there] == at, numbers[here], result[there])
    return value, result


def avg_pool(x: Array, *, data_format: str = "", **options: Any) -> Bounded:
    """The mean of the elements of each window, padding left out; NaN where there is none."""
    values = wide(_last(x, data_format)).astype(np.longdouble)
    axes = _axes(values, options)
    total = np.zeros(_shape(values, axes), np.longdouble)
    size, count = total.copy(), total.copy()
    with np.errstate(all="ignore"):
        for _, there, here in places(axes):
            total[there] += values[here]
            size[there] += np.abs(values[here])
            count[there] += 1
        kind = x if kind_of(x.dtype) == "f" else np.zeros((), np.float32)
        bound = size / count * (levels(_count(values, options)) + 1) * epsilon(kind)
        bound = np.where(np.isfinite(bound), bound, 0)
        return Bounded(_restored(total / count, data_format), _restored(bound, data_format))


def avg_pool_grad(dy: Array, input: Array, *, data_format: str = "", **options: Any) -> Bounded:
    """Each element of a window gets the same part of its dy, and the parts add up to dy."""
    cotangent = wide(_last(dy, data_format))
    x = _last(input, data_format)
    axes = _axes(x, options)
    count = np.zeros(cotangent.shape, np.longdouble)
    for _, there, _ in places(axes):
        count[there] += 1
    out = np.zeros(x.shape, np.longdouble)
    size = out.copy()
    with np.errstate(all="ignore"):
        share = cotangent / count
        for _, there, here in places(axes):
            out[here] += share[there]
            size[here] += np.abs(share[there])
    bound = size * (levels(_count(x, options)) + 2) * epsilon(dy)
    return Bounded(_restored(out, data_format), _restored(bound, data_format))


def pool(
    input: Array, *, window_shape: Any, pooling_type: str, strides: Any = 1, **options: Any
) -> Array | Bounded:
    """Either of the two, with dilated taps."""
    reduce = max_pool if pooling_type == "max" else avg_pool
    return reduce(input, filter_size=window_shape, strides=strides, **options)


def _winners(x: Array, options: dict[str, Any]) -> tuple[Array, Array]:
    """Return the first largest of each window, and which tap it is: the first NaN, if any."""
    axes = _axes(x, options)
    lowest = -np.inf if kind_of(x.dtype) == "f" else np.iinfo(x.dtype).min
    value = np.full(_shape(x, axes), lowest, dtype=x.dtype)
    winner = np.full(value.shape, -1)
    for at, (_, there, here) in enumerate(places(axes)):
        tap, best = x[here], value[there]
        with np.errstate(invalid="ignore"):
            beats = (winner[there] < 0) | (~_nan(best) & ((tap > best) | _nan(tap)))
        value[there] = np.where(beats, tap, best)
        winner[there] = np.where(beats, at, winner[there])
    return value, winner


def _axes(x: Array, options: dict[str, Any]) -> tuple[Axis, ...]:
    """Return the axes of an array with channels last."""
    sizes = x.shape[1:-1]
    return all_axes(
        sizes,
        several(options["filter_size"], len(sizes)),
        strides=options.get("strides", 1),
        pad=options["pad"],
        dilations=options.get("dilations", 1),
        dim_rounding_mode=options.get("dim_rounding_mode"),
    )


def _shape(x: Array, axes: tuple[Axis, ...]) -> tuple[int, ...]:
    return (x.shape[0], *(window.out for window in axes), x.shape[-1])


def _count(x: Array, options: dict[str, Any]) -> int:
    return prod(window.taps for window in _axes(x, options))


def _last(x: Array, data_format: str) -> Array:
    return np.moveaxis(x, 1, -1) if data_format.startswith("NC") else x


def _restored(x: Array, data_format: str) -> Array:
    return np.moveaxis(x, -1, 1) if data_format.startswith("NC") else x


def _nan(x: Array) -> Array:
    return np.isnan(x) if kind_of(x.dtype) == "f" else np.zeros(x.shape, dtype=bool)
