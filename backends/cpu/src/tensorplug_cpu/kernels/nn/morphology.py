"""Dilation: one vectorised step per tap, over the positions at which the tap is on the image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.algorithms import dilation_windows
from tensorplug.plugin import DType, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.arrays import working
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.summation import summer
from tensorplug_cpu.windows.sliding import inside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_cpu.arrays import Array, Call
    from tensorplug_cpu.windows.sliding import Step

kernels = Kernels()

Attributes = dict[str, Any]


def _lowest(dtype: DType) -> Any:
    """Return a value that never exceeds an element."""
    return -np.inf if dtype in dt.FLOATING else dtype.min


@kernels.prepare(specs.DILATION2D, because="faster")
def dilation2d(
    x: TensorType, filter: TensorType, *, attributes: Attributes, out: TensorType
) -> Call:
    """Take the maximum over the taps."""
    steps = list(inside(dilation_windows(x.shape, filter.shape, attributes)))
    lowest = _lowest(x.dtype)

    def run(x: Array, filter: Array) -> Array:
        return _largest(x, filter, steps, out.shape, lowest)

    return without_warnings(run)


def _largest(
    x: Array, filter: Array, steps: list[Step], shape: tuple[int, ...], lowest: Any
) -> Array:
    result = np.full(shape, lowest, x.dtype)
    for tap, positions, elements in steps:
        part = result[positions]
        np.maximum(part, x[elements] + filter[tap], out=part)
    return result


def _winners(
    x: Array, filter: Array, steps: list[Step], shape: tuple[int, ...]
) -> Iterator[Array]:
    """Yield, for each tap, the positions at which it is the argmax of the window."""
    best = _largest(x, filter, steps, shape, -np.inf)
    undefined = bool(np.isnan(best).any())
    searching = np.ones(shape, bool)  # windows whose argmax is not found yet
    for tap, positions, elements in steps:
        candidate, open_ = x[elements] + filter[tap], searching[positions]
        wins = candidate == best[positions]
        if undefined:
            wins |= np.isnan(candidate)
        wins &= open_
        open_ ^= wins
        yield wins


def _passed(dy: Array, wins: Array) -> Array:
    """Return dy or 0.0, as a product of its bits: faster than choosing by a random mask."""
    return np.asarray(np.multiply(dy.view(f"i{dy.itemsize}"), wins)).view(dy.dtype)


@kernels.prepare(specs.DILATION2D_BACKPROP_INPUT, because="faster")
def backprop_input(
    x: TensorType, filter: TensorType, dy: TensorType, *, attributes: Attributes
) -> Call:
    """Add dy to the element under the argmax; float16 adds in float32."""
    steps = list(inside(dilation_windows(x.shape, filter.shape, attributes)))
    work, narrow, shape = working(x.dtype), x.dtype.numpy, dy.shape

    def run(x: Array, filter: Array, dy: Array) -> Array:
        wide, result = dy.astype(work, copy=False), np.zeros(x.shape, work)
        winners = _winners(x, filter, steps, shape)
        for (_, positions, elements), wins in zip(steps, winners, strict=True):
            result[elements] += _passed(wide[positions], wins)
        return result.astype(narrow, copy=False)

    return without_warnings(run)


@kernels.prepare(specs.DILATION2D_BACKPROP_FILTER, because="faster")
def backprop_filter(
    x: TensorType, filter: TensorType, dy: TensorType, *, attributes: Attributes
) -> Call:
    """Add dy to the argmax tap; float16 adds in float32."""
    steps = list(inside(dilation_windows(x.shape, filter.shape, attributes)))
    work, narrow, shape = working(x.dtype), x.dtype.numpy, dy.shape

    def run(x: Array, filter: Array, dy: Array) -> Array:
        wide = dy.astype(work, copy=False)
        rows = []
        winners = _winners(x, filter, steps, shape)
        for (_, positions, _), wins in zip(steps, winners, strict=True):
            part = _passed(wide[positions], wins)
            rows.append(summer(part.shape, (0, 1, 2), work, keep_dims=False)(part))
        return np.stack(rows).reshape(filter.shape).astype(narrow, copy=False)

    return without_warnings(run)
