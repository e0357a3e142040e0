"""Rounding, signs, bounds and neighbours: NumPy's ufuncs; integers are returned as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import KernelSpec, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.execution.floating_point import kernel, ufunc
from tensorplug_cpu.execution.outputs import elementwise_kernel
from tensorplug_cpu.jit.groups import elementary
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()

_ROUNDING: dict[KernelSpec, np.ufunc] = {
    specs.CEIL: np.ceil,
    specs.ROUND: np.rint,
    specs.TRUNC: np.trunc,
}


def _itself(x: Array) -> Array:
    return x


def _complex_sign(x: Array) -> Array:
    # NumPy's modulus of large numbers overflows: they are scaled by a power of 2 first.
    large = np.finfo(x.dtype).max / 4
    big = (np.abs(x.real) > large) | (np.abs(x.imag) > large)
    result = np.sign(np.where(big & np.isfinite(x), x * x.real.dtype.type(0.25), x))
    # NumPy overlooks a NaN beside an infinity; the standard wants NaN in both parts.
    return np.where(np.isnan(x), x.dtype.type(complex(np.nan, np.nan)), result)


def _register_rounding(spec: KernelSpec, function: np.ufunc) -> None:
    @kernels.prepare(spec, because="faster")
    def prepare(x: TensorType, *, out: TensorType) -> Call:
        return ufunc(function, out, signals=True) if x.dtype in dt.INEXACT else _itself


for _spec, _function in _ROUNDING.items():
    _register_rounding(_spec, _function)

elementary.register(kernels, {specs.COPY_SIGN: np.copysign}, signals=())


@kernels.prepare(specs.NEXT_AFTER, because="faster")
def nextafter(a: TensorType, b: TensorType, *, out: TensorType) -> Call:
    """Neighbour; NumPy's of a float16 zero is that zero itself where the other one is wanted."""
    if out.dtype is not dt.float16:
        return ufunc(np.nextafter, out, signals=True)
    return kernel(lambda a, b: np.where(np.equal(a, b), b, np.nextafter(a, b)), out)


@kernels.prepare(specs.SIGN, because="faster")
def sign(x: TensorType, *, out: TensorType) -> Call:
    """-1, 0, 1 or NaN; a complex number over its modulus."""
    if x.dtype in dt.COMPLEX:
        return kernel(_complex_sign, out)
    return ufunc(np.sign, out, signals=x.dtype in dt.INEXACT)


@kernels.prepare(specs.SIGN_BIT, because="faster")
def signbit(x: TensorType, *, out: TensorType) -> Call:
    """Sign bit of floats; of integers whether they are negative."""
    if x.dtype in dt.FLOATING:
        return ufunc(np.signbit, out, signals=False)
    return kernel(lambda x: np.less(x, 0), out)


@kernels.prepare(specs.CLIP_BY_VALUE, because="faster")
def clip_by_value(
    x: TensorType, *, clip_value_min: dt.Scalar, clip_value_max: dt.Scalar, out: TensorType
) -> Call:
    """Clip to bounds that are made once, in x's dtype."""
    dtype = x.dtype.numpy
    with np.errstate(over="ignore"):  # a bound beyond the dtype's largest number is infinite
        low, high = (np.array(at).astype(dtype) for at in (clip_value_min, clip_value_max))

    def one_pass(result: Array, x: Array) -> None:
        x.clip(low, high, out=result)

    def two_passes(result: Array, x: Array) -> None:
        np.minimum(np.maximum(x, low, out=result), high, out=result)

    # NumPy's one pass goes through Python, which costs as much as passing over 8 KiB.
    return elementwise_kernel(two_passes if out.nbytes <= 1 << 13 else one_pass, out)
