"""The Gaussian error linear unit and its gradient, block by block.

All is computed at -|x|, where the distribution function and the slope are small and keep their
relative accuracy. At |x|, each is 1 minus that.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.algorithms import GELU_CUBIC, GELU_REACH, error_function
from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.arrays import working
from tensorplug_cpu.execution import parallel
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.execution.outputs import output_allocator
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.numerics.special_functions import erfc_double

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array, Call

    # Writes the factor of x, or of dy, at -|x| into the first array, |x| into the second.
    Factor = Callable[[list[Array], Array], Array]
    Finish = Callable[[Array, list[Array], Array, Array], None]

kernels = Kernels()

_BLOCK: Final = 1 << 16  # numbers: few calls of NumPy, and what is made stays in a cache
_SHARED: Final = 1 << 21  # elements from which threads, which wait for one another, help
_INNER: Final = math.sqrt(2.0 / math.pi)
_DENSITY: Final = 1.0 / math.sqrt(2.0 * math.pi)

_NUMERATOR, _DENOMINATOR = (
    [np.float32(number) for number in part] for part in error_function.NORMAL_SINGLE
)


def _single_distribution(rooms: list[Array], x: Array) -> Array:
    """Write the normal distribution function of float32 at -|x| into the first array."""
    _mills_ratio(rooms, x)
    return _times_power(rooms)


def _single_slope(rooms: list[Array], x: Array) -> Array:
    result, size, work = rooms[:3]
    _mills_ratio(rooms, x)
    result -= np.multiply(size, np.float32(_DENSITY), out=work)
    return _times_power(rooms)


def _mills_ratio(rooms: list[Array], x: Array) -> None:
    """Write the rational function into the first array, and |x| into the second."""
    result, size, below = rooms[:3]
    np.abs(x, out=size)
    size.clip(0, np.float32(GELU_REACH), out=size)
    _polynomial(_NUMERATOR, size, result)
    _polynomial(_DENOMINATOR, size, below)
    result /= below


def _times_power(rooms: list[Array]) -> Array:
    """Multiply the first array by exp(-size**2 / 2)."""
    result, size, work = rooms[:3]
    np.square(size, out=work)
    work *= np.float32(-0.5)
    result *= np.exp(work, out=work)
    return result


def _polynomial(coefficients: list[np.float32], x: Array, result: Array) -> None:
    np.multiply(x, coefficients[-1], out=result)
    for coefficient in coefficients[-2:0:-1]:
        result += coefficient
        result *= x
    result += coefficients[0]


def _double_distribution(rooms: list[Array], x: Array) -> Array:
    """Write the normal distribution function at -|x|, in float64, into the first array."""
    result, size = rooms[:2]
    np.abs(x, out=size)
    size.clip(0, GELU_REACH, out=size)
    return np.multiply(erfc_double(size * math.sqrt(0.5)), 0.5, out=result)


def _double_slope(rooms: list[Array], x: Array) -> Array:
    result = _double_distribution(rooms, x)
    size = rooms[1]
    density = np.exp(np.square(size) * -0.5)
    density *= _DENSITY
    density *= size
    result -= density
    return result


def _approximate_distribution(rooms: list[Array], x: Array) -> Array:
    result, work = rooms[0], rooms[2]
    _approximate_power(rooms, x)
    np.add(result, 1, out=work)
    result /= work
    return result


def _approximate_slope(rooms: list[Array], x: Array) -> Array:
    result, size, work, bend = rooms[:4]
    _approximate_power(rooms, x)
    bend -= 2 * _INNER
    bend *= 3
    bend += 2 * _INNER  # the slope of the sigmoid's argument
    bend *= size
    np.add(result, 1, out=work)
    bend /= work
    result /= work
    np.subtract(1, bend, out=bend)
    result *= bend
    return result


def _approximate_power(rooms: list[Array], x: Array) -> None:
    """Write exp(-v) into the first array, |x| into the second, and v / |x| into the fourth.

    The sigmoid of v approximates the distribution function at |x|.
    """
    result, size, _, factor = rooms[:4]
    np.abs(x, out=size)
    size.clip(0, GELU_REACH, out=size)
    np.square(size, out=factor)
    factor *= 2 * _INNER * GELU_CUBIC
    factor += 2 * _INNER
    np.multiply(size, factor, out=result)
    np.negative(result, out=result)
    np.exp(result, out=result)


_DISTRIBUTIONS: Final[dict[bool, dict[Any, Factor]]] = {
    False: {np.float32: _single_distribution, np.float64: _double_distribution},
    True: dict.fromkeys((np.float32, np.float64), _approximate_distribution),
}
_SLOPES: Final[dict[bool, dict[Any, Factor]]] = {
    False: {np.float32: _single_slope, np.float64: _double_slope},
    True: dict.fromkeys((np.float32, np.float64), _approximate_slope),
}


def _blockwise(factor: Factor, finish: Finish, out: TensorType) -> Call:
    """Return a kernel that computes a factor that depends on |x|, then what ``finish`` adds."""
    dtype, allocate = working(out.dtype), output_allocator(out)
    parts = None if out.size >= _SHARED else 1
    length = max(1, min(_BLOCK, out.size))

    def work(result: Array, x: Array, other: Array) -> None:
        rooms = np.empty((4, length), dtype)
        for start in range(0, len(x), _BLOCK):
            at = slice(start, start + _BLOCK)
            wide = x[at].astype(dtype, copy=False)
            cut = list(rooms[:, : len(wide)])
            factor(cut, wide)
            finish(result[at], cut, wide, other[at])

    def run(x: Array, other: Array) -> Array:
        result = allocate()
        flat = x.reshape(-1), other.reshape(-1)
        parallel.share_out(work, flat, result.reshape(-1), parts=parts)
        return result

    return without_warnings(run)


def _multiply_x(result: Array, rooms: list[Array], x: Array, _: Array) -> None:
    """Subtract |x| times the factor from x above 0, and from 0 below."""
    below, size, above = rooms[:3]
    below *= size
    x.clip(0, np.inf, out=above)  # in a third of the time of maximum
    np.subtract(above, below, out=result, casting="same_kind")


def _multiply_dy(result: Array, rooms: list[Array], x: Array, dy: Array) -> None:
    """Multiply dy by the slope: the factor below 0, and 1 less the factor above."""
    slope, above = rooms[:2]
    np.greater_equal(x, 0, out=above)
    np.subtract(above, slope, out=slope)
    above *= 2
    above -= 1
    slope *= above
    np.multiply(slope, dy, out=result, casting="same_kind")


@kernels.prepare(specs.GELU, because="faster")
def gelu(x: TensorType, *, approximate: bool, out: TensorType) -> Call:
    """Multiply by the distribution function."""
    factor = _DISTRIBUTIONS[approximate][working(out.dtype).type]
    run = _blockwise(factor, _multiply_x, out)
    return lambda x: run(x, x)


@kernels.prepare(specs.GELU_GRAD, because="faster")
def gelu_grad(dy: TensorType, x: TensorType, *, approximate: bool, out: TensorType) -> Call:
    """Multiply dy by the slope."""
    factor = _SLOPES[approximate][working(out.dtype).type]
    run = _blockwise(factor, _multiply_dy, out)
    return lambda dy, x: run(x, dy)
