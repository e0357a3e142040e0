"""Activation functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug import dtypes as dt
from tensorplug.ops import activation as ops
from tensorplug.tables import KernelTable
from tensorplug_cpu.arrays import working
from tensorplug_cpu.quiet import kernel, quietly
from tensorplug_cpu.summation import summer

if TYPE_CHECKING:
    from tensorplug.spec import TensorType
    from tensorplug_cpu.arrays import Array, Call

kernels = KernelTable()


@kernels.prepare(ops.RELU)
def relu(x: TensorType, *, out: TensorType) -> Call:
    """Cut off below 0; NaN stays."""
    if x.dtype in dt.UNSIGNED:
        return lambda x: x
    zero = np.zeros((), out.dtype.numpy)
    if x.dtype in dt.SIGNED:
        return kernel(lambda x: np.maximum(x, zero), out)

    def run(x: Array) -> Array:
        result = np.asarray(np.maximum(x, zero))
        result += zero  # of 0.0 and -0.0 the maximum is either, as the processor has it
        return result

    return quietly(run)


@kernels.prepare(ops.SIGMOID)
def sigmoid(x: TensorType, *, out: TensorType) -> Call:
    """Compute from ``e**-|x|``, which neither overflows nor loses small results."""
    dtype = working(out.dtype)
    real = out.dtype in dt.FLOATING

    def run(x: Array) -> Any:
        wide = x.astype(dtype, copy=False)
        below = wide.real < 0
        small = np.exp(-np.abs(wide) if real else np.where(below, wide, -wide))
        result = np.where(below, small, 1) / (1 + small)
        return result.astype(x.dtype, copy=False)

    return kernel(run, out)


def _shifted(x: Array, axis: int, dtype: np.dtype[Any]) -> Array:
    wide = x.astype(dtype, copy=False)
    highest = np.maximum.reduce(wide, axis=axis, keepdims=True)
    return np.asarray(np.subtract(wide, highest))


@kernels.prepare(ops.SOFTMAX)
def softmax(logits: TensorType, *, dim: int, out: TensorType) -> Call:
    """Divide ``e**(x - max)`` by its sum."""
    if not out.size:
        return lambda x: x
    dtype, narrow = working(out.dtype), out.dtype.numpy
    add = summer(out.shape, (dim,), dtype, keep_dims=True)

    def run(x: Array) -> Any:
        powers = _shifted(x, dim, dtype)
        np.exp(powers, out=powers)
        powers /= add(powers)
        return powers.astype(narrow, copy=False)

    return kernel(run, out)


@kernels.prepare(ops.LOG_SOFTMAX)
def log_softmax(logits: TensorType, *, axis: int, out: TensorType) -> Call:
    """Subtract the logarithm of the sum of ``e**(x - max)`` from ``x - max``.

    Where one entry is far above the others the sum is 1 and a little, and the logarithm is that
    little: it is taken in float64, in which it survives.
    """
    if not out.size:
        return lambda x: x
    dtype, narrow = working(out.dtype), out.dtype.numpy
    add = summer(out.shape, (axis,), np.dtype(np.float64), keep_dims=True)

    def run(x: Array) -> Any:
        shifted = _shifted(x, axis, dtype)
        total = add(np.exp(shifted).astype(np.float64, copy=False))
        np.subtract(shifted, np.log(total), out=shifted, casting="same_kind")
        return shifted.astype(narrow, copy=False)

    return kernel(run, out)
