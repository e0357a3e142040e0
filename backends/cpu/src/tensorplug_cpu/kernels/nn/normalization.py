"""Local response normalization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.arrays import working
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


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
