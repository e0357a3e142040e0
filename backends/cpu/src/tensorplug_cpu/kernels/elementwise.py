"""Elementwise arithmetic: mostly NumPy's ufuncs, called directly by the plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import DType, KernelSpec, TensorType, specs, warn
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.execution import parallel
from tensorplug_cpu.execution.channels import per_channel
from tensorplug_cpu.execution.floating_point import binary, kernel, ufunc
from tensorplug_cpu.execution.outputs import elementwise_kernel
from tensorplug_cpu.jit.forms import by_form
from tensorplug_cpu.jit.groups import elementary
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.numerics import casting, special_functions

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()

_BINARY: dict[KernelSpec, np.ufunc] = {
    specs.ADD: np.add,
    specs.SUB: np.subtract,
    specs.MULTIPLY: np.multiply,
    specs.REAL_DIV: np.true_divide,
    specs.MOD: np.remainder,
    specs.MAXIMUM: np.maximum,
    specs.MINIMUM: np.minimum,
}

elementary.register(
    kernels,
    {
        specs.NEG: np.negative,
        specs.ABS: np.absolute,
        specs.EXP: np.exp,
        specs.LOG: np.log,
        specs.SQRT: np.sqrt,
        specs.SIN: np.sin,
        specs.COS: np.cos,
        specs.ATAN: np.arctan,
        specs.TANH: np.tanh,
        specs.SQUARE: np.square,
    },
)

_MANY = 4096  # elements that are chosen by their bits


def _register_binary(spec: KernelSpec, function: np.ufunc) -> None:
    @kernels.prepare(spec, because="faster")
    def prepare(a: TensorType, b: TensorType, *, out: TensorType) -> Call:
        if spec is specs.REAL_DIV and out.dtype in dt.COMPLEX:
            return elementwise_kernel(_divide_complex, out)
        if spec is specs.MOD and out.dtype in dt.INTEGER:
            return _integer_division(function, out)
        for_channels = per_channel(function, a, b, out)
        return for_channels or ufunc(function, out, signals=a.dtype in dt.INEXACT)


def _integer_division(function: np.ufunc, out: TensorType) -> Call:
    """Return a division whose results for divisors 0 are 0, with NumPy's warning.

    It is repeated without the warning's flag only if there are such divisors.
    """
    silent = ufunc(function, out, signals=True)

    def in_part(result: Array, a: Array, b: Array) -> None:
        with np.errstate(all="ignore", divide="raise"):  # in a thread of its own
            function(a, b, out=result)

    def warned(a: Array, b: Array) -> Any:
        warn(
            f"divide by zero encountered in {function.__name__}",
            RuntimeWarning,
            within=("tensorplug_cpu",),
        )
        return silent(a, b)

    if out.rank == 0:
        return binary(lambda a, b: np.asarray(function(a, b)), warned)
    return binary(elementwise_kernel(in_part, out) if parallel.is_large(out) else function, warned)


for _spec, _function in _BINARY.items():
    _register_binary(_spec, _function)


def _itself(x: Array) -> Array:
    return x


@kernels.prepare(specs.FLOOR)
def floor(x: TensorType, *, out: TensorType) -> Call:
    """Round down; integers are returned as they are."""
    return ufunc(np.floor, out, signals=True) if x.dtype in dt.FLOATING else _itself


@kernels.prepare(specs.ERF)
def erf(x: TensorType, *, out: TensorType) -> Call:
    """Compute the error function; float16 in float32, rounded once."""
    return elementary.compiled(specs.ERF, out) or kernel(special_functions.erf, out)


@kernels.prepare(specs.DIV_NO_NAN, because="faster")
def div_no_nan(a: TensorType, b: TensorType, *, out: TensorType) -> Call:
    """Divide, then write zeros over what was divided by 0."""
    divide = _divide_complex if out.dtype in dt.COMPLEX else _divide

    def work(quotient: Array, a: Array, b: Array) -> None:
        divide(quotient, a, b)
        np.copyto(quotient, 0, where=np.equal(b, 0))

    return elementwise_kernel(work, out)


def _divide(quotient: Array, a: Array, b: Array) -> None:
    np.true_divide(a, b, out=quotient)


def _divide_complex(quotient: Array, a: Array, b: Array) -> None:
    """Divide complex numbers; those that NumPy's way takes out of range once more, scaled.

    NumPy divides as R. L. Smith does ("Algorithm 116: Complex division", 1962). Where the numbers
    are near the largest ones, its terms overflow, and the result is infinite, NaN or 0.
    """
    np.true_divide(a, b, out=quotient)
    doubtful = ~np.isfinite(quotient) | (quotient == 0)
    if doubtful.any():
        dividends, above = _near_one(np.broadcast_to(a, quotient.shape)[doubtful])
        divisors, below = _near_one(np.broadcast_to(b, quotient.shape)[doubtful])
        quotient[doubtful] = _ldexp(np.true_divide(dividends, divisors), above - below)


def _near_one(x: Array) -> tuple[Array, Array]:
    """Return finite numbers with the larger part between 1/2 and 1, and exponents of 2."""
    size = np.maximum(np.abs(x.real), np.abs(x.imag))
    exponents = np.where(np.isfinite(size), np.frexp(size)[1], 0)
    return _ldexp(x, -exponents), exponents


def _ldexp(x: Array, exponents: Array) -> Array:
    scaled = np.empty_like(x)
    scaled.real, scaled.imag = np.ldexp(x.real, exponents), np.ldexp(x.imag, exponents)
    return scaled


@kernels.prepare(specs.FLOOR_DIV)
def floor_div(a: TensorType, b: TensorType, *, out: TensorType) -> Call:
    """Divide and round down; an integer divided by 0 gives 0, as in NumPy."""
    if out.dtype in dt.INTEGER:
        return _integer_division(np.floor_divide, out)

    def run(a: Array, b: Array) -> Any:
        quotient = np.asarray(np.floor_divide(a, b))
        # NumPy makes NaN of an infinite dividend; in the array API the quotient is infinite.
        infinite = np.isinf(a)
        if infinite.any():
            np.copyto(quotient, np.true_divide(a, b), where=infinite)
        return quotient

    return kernel(run, out)


@kernels.prepare(specs.POW)
@by_form(specs.POW, dt.INTEGER)
def pow(_a: TensorType, b: TensorType, *, out: TensorType) -> Call:
    """Raise to a power; integers to a negative one give 1/a rounded towards 0."""
    if out.dtype in dt.SIGNED:
        return kernel(_signed_power, out)
    if out.dtype is dt.complex64:  # the C library's own is off by up to 20 ulp
        return kernel(_wide_power, out)
    if out.dtype in dt.INEXACT and not b.rank:
        return kernel(_power_of_one_exponent, out)
    return ufunc(np.power, out, signals=True)


def _wide_power(a: Array, b: Array) -> Any:
    return np.power(a, b, dtype=np.complex128).astype(np.complex64)


def _power_of_one_exponent(a: Array, b: Array) -> Any:
    return np.square(a) if b == 2 else np.power(a, b)  # squaring is 20 times as fast, and exact


def _signed_power(a: Array, b: Array) -> Any:
    negative = b < 0
    if not negative.any():
        return np.power(a, b)
    power = np.power(a, np.where(negative, 0, b))
    unit = np.where(np.bitwise_and(b, 1).astype(bool), a, np.square(a))  # a**b for a = 1, -1
    inverse = np.where(np.abs(a) == 1, unit, 0)
    return np.where(negative, inverse, power).astype(power.dtype, copy=False)


@kernels.prepare(specs.CAST)
def cast(x: TensorType, *, dtype: DType, out: TensorType) -> Call:
    """Convert by the rules of ``casting``."""
    if x.dtype is dtype:
        return _itself
    return kernel(casting.converter(x.dtype, dtype), out)


@kernels.prepare(specs.SELECT)
def select(condition: TensorType, t: TensorType, e: TensorType, *, out: TensorType) -> Call:
    """Choose elementwise: many elements by arithmetic on their bits.

    NumPy's own loop branches, which takes ten times as long where the condition is random.
    """
    if out.size < _MANY or out.dtype.itemsize > 8 or out.dtype.kind == "string":
        return kernel(np.where, out)
    whole = np.dtype(f"i{out.dtype.itemsize}")

    def choose(result: Array, condition: Array, t: Array, e: Array) -> None:
        bits, ours, others = (array.view(whole) for array in (result, t, e))
        if not others.ndim and not others:  # the most common case
            np.multiply(ours, condition, out=bits)
            return
        np.bitwise_xor(ours, others, out=bits)
        np.multiply(bits, condition, out=bits)
        np.bitwise_xor(bits, others, out=bits)

    return elementwise_kernel(choose, out)
