"""Elementwise arithmetic, comparison and logic: mostly NumPy's ufuncs, on each block."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import KernelTable
from tensorplug.ops import comparison, complexes, elementwise, powers, trigonometry
from tensorplug.ops.nn import activation
from tensorplug_dask.native import native_elementwise

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec, TensorType

    Array = np.ndarray[Any, Any]

kernels = KernelTable()

_erf = np.frompyfunc(math.erf, 1, 1)  # NumPy has none; this is the C library's, in float64


def erf(x: Array) -> Any:
    return np.asarray(_erf(x)).astype(x.dtype)


def floor(x: Array) -> Any:
    return np.floor(x) if x.dtype.kind == "f" else x


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
    if x.dtype.kind == "f" and dtype in dt.INTEGER:
        # C leaves undefined what does not fit. Modulo 2**64, which fmod gives exactly, it does.
        whole = np.fmod(np.trunc(np.where(np.isfinite(x), x, 0)).astype(np.float64), 2.0**64)
        size = np.abs(whole).astype(np.uint64)
        x = np.where(whole < 0, -size, size)
    return x.astype(dtype.numpy)


def joined(real: Array, imag: Array, *, out: TensorType) -> Any:
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), out.dtype.numpy)
    result.real, result.imag = real, imag
    return result


# Beyond the primitives stand here functions whose decompositions are for real numbers, and the
# parts of complex ones, which ops would take apart only on the host.
SIMPLE: Final[dict[KernelSpec, Callable[..., Any]]] = {
    elementwise.NEG: np.negative,
    elementwise.ABS: np.absolute,
    elementwise.FLOOR: floor,
    elementwise.EXP: np.exp,
    elementwise.LOG: np.log,
    elementwise.SQRT: np.sqrt,
    elementwise.SIN: np.sin,
    elementwise.COS: np.cos,
    elementwise.ATAN: np.arctan,
    elementwise.ERF: erf,
    elementwise.TANH: np.tanh,
    trigonometry.ACOS: np.arccos,
    trigonometry.ACOSH: np.arccosh,
    trigonometry.ASIN: np.arcsin,
    trigonometry.ASINH: np.arcsinh,
    trigonometry.ATANH: np.arctanh,
    trigonometry.COSH: np.cosh,
    trigonometry.SINH: np.sinh,
    trigonometry.TAN: np.tan,
    powers.EXPM1: expm1,
    powers.LOG10: np.log10,
    powers.LOG1P: log1p,
    powers.LOG2: np.log2,
    activation.SIGMOID: sigmoid,
    elementwise.SQUARE: np.square,
    elementwise.ADD: np.add,
    elementwise.SUB: np.subtract,
    elementwise.MULTIPLY: np.multiply,
    elementwise.REAL_DIV: np.true_divide,
    elementwise.FLOOR_DIV: floor_div,
    elementwise.MOD: np.remainder,
    elementwise.POW: power,
    elementwise.MAXIMUM: np.maximum,
    elementwise.MINIMUM: np.minimum,
    elementwise.SELECT: np.where,
    elementwise.CAST: cast,
    comparison.EQUAL: np.equal,
    comparison.NOT_EQUAL: np.not_equal,
    comparison.LESS: np.less,
    comparison.LESS_EQUAL: np.less_equal,
    comparison.GREATER: np.greater,
    comparison.GREATER_EQUAL: np.greater_equal,
    comparison.LOGICAL_AND: np.logical_and,
    comparison.LOGICAL_OR: np.logical_or,
    comparison.LOGICAL_NOT: np.logical_not,
    comparison.IS_FINITE: np.isfinite,
    comparison.IS_INF: np.isinf,
    comparison.IS_NAN: np.isnan,
    complexes.REAL: np.real,
    complexes.IMAG: np.imag,
    complexes.COMPLEX: joined,
}

for _spec, _function in SIMPLE.items():
    native_elementwise(kernels, _spec, _function)
