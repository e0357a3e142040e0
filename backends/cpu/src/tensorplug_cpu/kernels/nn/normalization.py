"""Normalization."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.arrays import working
from tensorplug_cpu.execution.floating_point import kernel, without_warnings
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()

_ROW = 512  # elements of a row, so that NumPy does not spend its time on starting rows
_BLOCK = 1 << 15  # elements that stay in the cache through all steps


def _per_channel(x: TensorType, *others: TensorType | None) -> bool:
    """Return whether the others have one number per channel, or one in all."""
    present = [other for other in others if other is not None]
    return x.rank > 0 and all(
        factor.size in (1, x.shape[-1]) and prod(factor.shape[-1:]) == factor.size
        for factor in present
    )


@kernels.prepare(specs.FUSED_BATCH_NORM, because="faster")
def batch_norm(
    x: TensorType,
    scale: TensorType | None,
    offset: TensorType | None,
    mean: TensorType,
    variance: TensorType,
    *,
    variance_epsilon: float,
    out: TensorType,
) -> Call:
    """Subtract, multiply, add, block by block where every channel has its own numbers."""
    dtype, narrow = working(out.dtype), out.dtype.numpy
    epsilon = dtype.type(variance_epsilon)

    def factor(scale: Array | None, variance: Array) -> Any:
        deviation = np.sqrt(np.add(variance, epsilon, dtype=dtype))
        return np.divide(1 if scale is None else scale, deviation, dtype=dtype)

    if not out.size or not _per_channel(x, scale, offset, mean, variance):

        def whole(
            x: Array, scale: Array | None, offset: Array | None, mean: Array, variance: Array
        ) -> Any:
            result = np.subtract(x, mean, dtype=dtype) * factor(scale, variance)
            if offset is not None:
                result = result + offset
            return result.astype(narrow, copy=False)

        return kernel(whole, out)

    channels = out.shape[-1]
    rows = _rows(out.shape)
    row = out.size // rows
    step = max(1, _BLOCK // row)

    def repeated(factor: Any) -> Array:
        numbers = np.broadcast_to(np.reshape(factor, -1), (channels,))
        return np.tile(numbers.astype(dtype, copy=False), row // channels)

    def run(
        x: Array, scale: Array | None, offset: Array | None, mean: Array, variance: Array
    ) -> Any:
        centre, by = repeated(mean), repeated(factor(scale, variance))
        shift = None if offset is None else repeated(offset)
        flat = x.reshape(rows, row)
        result = np.empty((rows, row), narrow)
        block = np.empty((min(step, rows), row), dtype)  # for what is rounded at the end
        for start in range(0, rows, step):
            part = result[start : start + step]
            work = part if dtype == narrow else block[: len(part)]
            np.subtract(flat[start : start + step], centre, out=work)
            np.multiply(work, by, out=work)
            if shift is not None:
                np.add(work, shift, out=work)
            if work is not part:
                part[...] = work
        return result.reshape(out.shape)

    return without_warnings(run)


def _rows(shape: tuple[int, ...]) -> int:
    """Return into how many equal rows, whole in channels, to cut an array of ``shape``."""
    axis, length = len(shape) - 1, shape[-1]
    while axis and length < _ROW:
        axis -= 1
        length *= shape[axis]
    return prod(shape[:axis])


def _neighbours_sum(x: Array, radius: int) -> Array:
    """Return the sums over channels, the *first* axis, and the ``radius`` on either side."""
    channels = len(x)
    width = 2 * radius + 1
    run = np.zeros((channels + 2 * radius, *x.shape[1:]), x.dtype)
    run[radius : radius + channels] = x
    done, length, total = 0, 1, None
    while True:
        if width & length:
            part = run[done : done + channels]
            total = part.copy() if total is None else np.add(total, part, out=total)
            done += length
        if total is not None and done == width:
            return total
        run = run[:-length] + run[length:]  # sums of twice as many
        length *= 2


def _power(beta: float, dtype: np.dtype[Any]) -> Callable[[Array], Any]:
    """Return a function that raises to ``-beta``, by roots if possible."""
    if beta == 0.5:
        return lambda n: np.divide(1, np.sqrt(n), dtype=dtype)
    if beta == 0.75:

        def by_roots(n: Array) -> Any:
            root = np.sqrt(n)
            return np.divide(1, root * np.sqrt(root), dtype=dtype)

        return by_roots
    exponent = dtype.type(-beta)
    return lambda n: np.power(n, exponent)


class _Response:
    """Shared by LRN and its gradient: arrays with channels first, in the working dtype."""

    def __init__(self, out: TensorType, radius: int, bias: float, alpha: float) -> None:
        self.dtype, self.narrow = working(out.dtype), out.dtype.numpy
        self.shape = out.shape
        self.radius = max(min(radius, out.shape[-1] - 1), 0)
        self.bias, self.alpha = self.dtype.type(bias), self.dtype.type(alpha)

    def first(self, x: Array) -> Array:
        """Return ``x`` as [channels, the rest]."""
        flat = x.reshape(-1, self.shape[-1]).T
        return np.ascontiguousarray(flat, self.dtype)

    def last(self, x: Array) -> Array:
        """Return an array that ``first`` made with its channels back in their place."""
        return np.ascontiguousarray(x.T, self.narrow).reshape(self.shape)

    def sum(self, x: Array) -> Array:
        return _neighbours_sum(x, self.radius)

    def norm(self, x: Array) -> Array:
        total = self.sum(np.square(x))
        total *= self.alpha
        total += self.bias
        return total


@kernels.prepare(specs.LRN, because="faster")
def lrn(
    x: TensorType,
    *,
    depth_radius: int,
    bias: float,
    alpha: float,
    beta: float,
    out: TensorType,
) -> Call:
    """Add the squares of neighbours, raise to a power, multiply."""
    if not out.size:
        return lambda x: x
    response = _Response(out, depth_radius, bias, alpha)
    power = _power(beta, response.dtype)

    def run(x: Array) -> Array:
        wide = response.first(x)
        return response.last(wide * power(response.norm(wide)))

    return without_warnings(run)


@kernels.prepare(specs.LRN_GRAD, because="faster")
def lrn_grad(
    x: TensorType,
    y: TensorType,
    dy: TensorType,
    *,
    depth_radius: int,
    bias: float,
    alpha: float,
    beta: float,
    out: TensorType,
) -> Call:
    """Scale dy, and subtract the effect of each channel on the norms of its neighbours."""
    if not out.size:
        return lambda x, _y, _dy: x
    response = _Response(out, depth_radius, bias, alpha)
    power = _power(beta, response.dtype)
    twice = response.dtype.type(2 * alpha * beta)

    def run(x: Array, y: Array, dy: Array) -> Array:
        wide, cotangent = response.first(x), response.first(dy)
        norm = response.norm(wide)
        shared = response.first(y) * cotangent
        shared /= norm
        result = cotangent * power(norm)
        wide = response.sum(shared) * wide
        wide *= twice
        result -= wide
        return response.last(result)

    return without_warnings(run)
