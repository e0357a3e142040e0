"""The Gaussian error linear unit and its gradient, block by block.

For float32, what the normal distribution function is above 1/2, and likewise the slope of the
unit, is x times a rational function of x**2, fitted by reweighted least squares so that the
error is a few ulp of 1. Coefficients are chosen so that cutting off gives exactly 0 and 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import GELU_CUBIC, GELU_REACH, KernelTable, TensorType, specs
from tensorplug_cpu import parallel
from tensorplug_cpu.arrays import working
from tensorplug_cpu.floating_point import without_warnings
from tensorplug_cpu.outputs import output_allocator
from tensorplug_cpu.special_functions import erfc_double

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array, Call

    # Writes the factor of x, or of dy, into the first of several arrays.
    Factor = Callable[[list[Array], Array], Array]

kernels = KernelTable()

_BLOCK: Final = 1 << 16  # numbers: few calls of NumPy, and what is made stays in a cache
_SHARED: Final = 1 << 21  # elements from which threads, which wait for one another, help
_INNER: Final = math.sqrt(2.0 / math.pi)
_DENSITY: Final = 1.0 / math.sqrt(2.0 * math.pi)

# Where to cut off, and the coefficients of numerator and denominator for x**0, x**2, ...
Ratio = tuple[float, tuple[float, ...], tuple[float, ...]]
_DISTRIBUTION: Final[Ratio] = (
    5.6,
    (3.989422e-01, 3.437601e-02, 4.707251e-03, 1.7384939e-04, 6.3564926e-06, 2.2145214e-08),
    (1.0, 2.528336e-01, 2.8940028e-02, 1.912971e-03, 7.5101336e-05, 1.1802061e-06),
)
_SLOPE: Final[Ratio] = (
    6.0,
    (7.9788446e-01, -3.0743523e-02, 1.4209181e-02, 2.418251e-05, 3.585065e-05, 1.9088613e-07),
    (1.0, 2.948056e-01, 4.1064676e-02, 3.5287605e-03, 1.935196e-04, 8.887514e-06),
)


def _ratio(of: Ratio) -> Factor:
    """Return a function that writes 1/2 plus the odd function of float32 into the first array."""
    reach, *parts = of
    top = np.float32(reach)
    numerator, denominator = ([np.float32(coefficient) for coefficient in part] for part in parts)

    def compute(rooms: list[Array], x: Array) -> Array:
        result, inside, square, below = rooms[:4]
        x.clip(-top, top, out=inside)
        np.square(inside, out=square)
        _polynomial(numerator, square, result)
        _polynomial(denominator, square, below)
        result *= inside
        result /= below
        result += np.float32(0.5)
        return result

    return compute


def _polynomial(coefficients: list[np.float32], x: Array, result: Array) -> None:
    np.multiply(x, coefficients[-1], out=result)
    for coefficient in coefficients[-2:0:-1]:
        result += coefficient
        result *= x
    result += coefficients[0]


def _double_distribution(rooms: list[Array], x: Array) -> Array:
    """Write the normal distribution function, in float64, into the first array."""
    result = rooms[0]
    tail = erfc_double(np.abs(x) * math.sqrt(0.5))
    tail *= 0.5
    np.subtract(1, tail, out=result)
    np.copyto(result, tail, where=x < 0)
    return result


def _double_slope(rooms: list[Array], x: Array) -> Array:
    inside = np.clip(x, -GELU_REACH, GELU_REACH, out=rooms[1])
    result = _double_distribution(rooms, inside)
    density = np.exp(np.square(inside) * -0.5)
    density *= _DENSITY
    density *= inside
    result += density
    return result


def _approximate_distribution(rooms: list[Array], x: Array) -> Array:
    result, inside, _, work = rooms[:4]
    x.clip(-GELU_REACH, GELU_REACH, out=inside)
    _tanh(inside, result, work)
    result += 1
    result *= 0.5
    return result


def _approximate_slope(rooms: list[Array], x: Array) -> Array:
    result, inside, bend, work = rooms[:4]
    x.clip(-GELU_REACH, GELU_REACH, out=inside)
    _tanh(inside, result, work)
    work -= _INNER
    work *= 3
    work += _INNER  # the slope of what the tanh is taken of
    work *= inside
    np.square(result, out=bend)
    np.subtract(1, bend, out=bend)
    bend *= work
    result += bend
    result += 1
    result *= 0.5
    return result


def _tanh(x: Array, result: Array, work: Array) -> None:
    """Write tanh(x * work) into ``result``; work becomes sqrt(2 / pi) * (1 + 0.044715 * x**2)."""
    np.square(x, out=work)
    work *= _INNER * GELU_CUBIC
    work += _INNER
    np.multiply(x, work, out=result)
    np.tanh(result, out=result)


_DISTRIBUTIONS: Final[dict[bool, dict[Any, Factor]]] = {
    False: {np.float32: _ratio(_DISTRIBUTION), np.float64: _double_distribution},
    True: dict.fromkeys((np.float32, np.float64), _approximate_distribution),
}
_SLOPES: Final[dict[bool, dict[Any, Factor]]] = {
    False: {np.float32: _ratio(_SLOPE), np.float64: _double_slope},
    True: dict.fromkeys((np.float32, np.float64), _approximate_slope),
}


def _blockwise(factor: Factor, out: TensorType, *, of_x: bool) -> Call:
    """Return a kernel that multiplies x, or dy, by a factor that depends on x."""
    dtype, allocate = working(out.dtype), output_allocator(out)
    parts = None if out.size >= _SHARED else 1
    length = max(1, min(_BLOCK, out.size))
    low = dtype.type(-GELU_REACH)

    def work(result: Array, x: Array, other: Array) -> None:
        rooms = np.empty((4, length), dtype)
        for start in range(0, len(x), _BLOCK):
            at = slice(start, start + _BLOCK)
            wide = x[at].astype(dtype, copy=False)
            cut = list(rooms[:, : len(wide)])
            by = factor(cut, wide)
            # Cut off below, because infinity times 0 is NaN.
            product = wide.clip(low, np.inf, out=cut[1]) if of_x else other[at]
            np.multiply(by, product, out=result[at], casting="same_kind")

    def run(x: Array, other: Array) -> Array:
        result = allocate()
        flat = x.reshape(-1), other.reshape(-1)
        parallel.share_out(work, flat, result.reshape(-1), parts=parts)
        return result

    return without_warnings(run)


@kernels.prepare(specs.GELU)
def gelu(x: TensorType, *, approximate: bool, out: TensorType) -> Call:
    """Multiply by the distribution function."""
    factor = _DISTRIBUTIONS[approximate][working(out.dtype).type]
    run = _blockwise(factor, out, of_x=True)
    return lambda x: run(x, x)


@kernels.prepare(specs.GELU_GRAD)
def gelu_grad(dy: TensorType, x: TensorType, *, approximate: bool, out: TensorType) -> Call:
    """Multiply dy by the slope."""
    factor = _SLOPES[approximate][working(out.dtype).type]
    run = _blockwise(factor, out, of_x=False)
    return lambda dy, x: run(x, dy)
