"""Elementwise arithmetic, comparison and logic: mostly NumPy's ufuncs, on each block."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import DType, KernelSpec, KernelTable, TensorType, narrowing, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_dask.native import native_elementwise

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray[Any, Any]

kernels = KernelTable()

_erf = np.frompyfunc(math.erf, 1, 1)  # NumPy has none; this is the C library's, in float64


def erf(x: Array) -> Any:
    return np.asarray(_erf(x)).astype(x.dtype)


def floor(x: Array) -> Any:
    return np.floor(x) if x.dtype.kind == "f" else x


def divide(a: Array, b: Array) -> Any:
    """NumPy divides complex numbers as R. L. Smith does; its terms overflow near the largest."""
    if a.dtype.kind != "c":
        return np.true_divide(a, b)
    dividends, divisors = _is_huge(a), _is_huge(b)
    quotient = np.where(dividends, a / 8, a) / np.where(divisors, b / 8, b)
    quotient = np.where(dividends, quotient * 8, quotient)
    return np.where(divisors, quotient / 8, quotient).astype(a.dtype)


def _is_huge(x: Array) -> Any:
    size = np.maximum(np.abs(x.real), np.abs(x.imag))
    return np.isfinite(size) & (size > np.finfo(x.dtype).max / 4)


def floor_div(a: Array, b: Array) -> Any:
    """NumPy makes NaN of an infinite dividend; its quotient is infinite."""
    quotient = np.floor_divide(a, b)
    return np.where(np.isinf(a), a / b, quotient) if quotient.dtype.kind == "f" else quotient


def power(a: Array, b: Array) -> Any:
    """An integer to a negative power, which NumPy refuses, is 1 / a**-b rounded towards 0.

    The C library's power of complex64 is off by up to 20 ulp: complex128 is used instead.
    """
    if a.dtype.kind == "i":
        unit = np.where(b % 2 == 1, a, 1)
        inverse = np.where(np.abs(a) == 1, unit, 0)
        return np.where(b < 0, inverse, np.power(a, np.maximum(b, 0))).astype(a.dtype)
    if a.dtype == np.complex64:
        return np.power(a, b, dtype=np.complex128).astype(np.complex64)
    return np.power(a, b)


def expm1(x: Array) -> Any:
    """Complex infinities and NaN are the exponential's, as in C; NumPy's are not."""
    found = np.expm1(x)
    return np.where(np.isfinite(x), found, np.exp(x) - 1) if x.dtype.kind == "c" else found


def log1p(x: Array) -> Any:
    """Near 0 NumPy's real part is the logarithm of |1 + x|, in which most of x is rounded away."""
    found = np.asarray(np.log1p(x))
    if x.dtype.kind == "c":
        near = (np.abs(x.real) < 0.5) & (np.abs(x.imag) < 0.5)
        exact = 0.5 * np.log1p(x.real * (2 + x.real) + x.imag * x.imag)
        found.real = np.where(near, exact, found.real)
    return found


def sigmoid(x: Array) -> Any:
    """Take the exponential of what has a negative real part, which does not overflow."""
    below = x.real < 0
    part = np.exp(np.where(below, x, -x))
    return np.where(below, part, 1) / (1 + part)


def cast(x: Array, *, dtype: DType) -> Any:
    """Floats are truncated and wrap into integers; NaN and infinities give 0."""
    if dtype is dt.bool_:
        return x != 0
    if x.dtype.kind == "c" and dtype not in dt.COMPLEX:
        x = x.real
    if dt.of(x.dtype) in dt.FLOATING and dtype in dt.INTEGER:
        # C leaves undefined what does not fit. Modulo 2**64, which fmod gives exactly, it does.
        whole = np.fmod(np.trunc(np.where(np.isfinite(x), x, 0)).astype(np.float64), 2.0**64)
        size = np.abs(whole).astype(np.uint64)
        x = np.where(whole < 0, -size, size)
    # ml_dtypes rounds wide numbers twice.
    return narrowing.convert(x, dtype) if dtype in dt.WIDENED else x.astype(dtype.numpy)


def joined(real: Array, imag: Array, *, out: TensorType) -> Any:
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), out.dtype.numpy)
    result.real, result.imag = real, imag
    return result


# Beyond the primitives: functions whose decompositions are for real numbers, and the parts of
# complex numbers, which decompositions could split only on the host.
SIMPLE: Final[dict[KernelSpec, Callable[..., Any]]] = {
    specs.NEG: np.negative,
    specs.ABS: np.absolute,
    specs.FLOOR: floor,
    specs.EXP: np.exp,
    specs.LOG: np.log,
    specs.SQRT: np.sqrt,
    specs.SIN: np.sin,
    specs.COS: np.cos,
    specs.ATAN: np.arctan,
    specs.ERF: erf,
    specs.TANH: np.tanh,
    specs.ACOS: np.arccos,
    specs.ACOSH: np.arccosh,
    specs.ASIN: np.arcsin,
    specs.ASINH: np.arcsinh,
    specs.ATANH: np.arctanh,
    specs.COSH: np.cosh,
    specs.SINH: np.sinh,
    specs.TAN: np.tan,
    specs.EXPM1: expm1,
    specs.LOG10: np.log10,
    specs.LOG1P: log1p,
    specs.LOG2: np.log2,
    specs.SIGMOID: sigmoid,
    specs.SQUARE: np.square,
    specs.ADD: np.add,
    specs.SUB: np.subtract,
    specs.MULTIPLY: np.multiply,
    specs.REAL_DIV: divide,
    specs.FLOOR_DIV: floor_div,
    specs.MOD: np.remainder,
    specs.POW: power,
    specs.MAXIMUM: np.maximum,
    specs.MINIMUM: np.minimum,
    specs.SELECT: np.where,
    specs.CAST: cast,
    specs.EQUAL: np.equal,
    specs.NOT_EQUAL: np.not_equal,
    specs.LESS: np.less,
    specs.LESS_EQUAL: np.less_equal,
    specs.GREATER: np.greater,
    specs.GREATER_EQUAL: np.greater_equal,
    specs.LOGICAL_AND: np.logical_and,
    specs.LOGICAL_OR: np.logical_or,
    specs.LOGICAL_NOT: np.logical_not,
    specs.IS_FINITE: np.isfinite,
    specs.IS_INF: np.isinf,
    specs.IS_NAN: np.isnan,
    specs.REAL: np.real,
    specs.IMAG: np.imag,
    specs.COMPLEX: joined,
}

for _spec, _function in SIMPLE.items():
    native_elementwise(kernels, _spec, _function)
