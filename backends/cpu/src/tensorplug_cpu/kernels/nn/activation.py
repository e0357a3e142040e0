"""Activation functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.arrays import element, working
from tensorplug_cpu.execution.floating_point import kernel, without_warnings
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.memory.pool import allocator
from tensorplug_cpu.summation import summer_in_float64

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


@kernels.prepare(specs.ELU_GRAD, because="faster")
def elu_grad(dy: TensorType, y: TensorType, *, out: TensorType) -> Call:
    """Multiply by ``y + 1``, the power itself, where ``y`` is below 0."""
    zero, one = element(0, out.dtype), element(1, out.dtype)

    def run(dy: Array, y: Array) -> Any:
        slope = np.asarray(np.minimum(y, zero))
        slope += one
        return np.multiply(slope, dy, out=slope)

    return without_warnings(run)


@kernels.prepare(specs.LEAKY_RELU, because="faster")
def leaky_relu(x: TensorType, *, alpha: float, out: TensorType) -> Call:
    """Take the larger of ``x`` and ``alpha * x``, if alpha allows that."""
    slope = element(alpha, out.dtype)
    if 0 < slope <= 1:

        def larger(x: Array) -> Any:
            result = np.asarray(np.multiply(x, slope))
            return np.maximum(result, x, out=result)

        return without_warnings(larger)
    return kernel(lambda x: np.where(x < 0, x * slope, x), out)


def _shifting(axis: int, dtype: np.dtype[Any], out: TensorType) -> Call:
    """Return a function that subtracts the maximum, so that no power of e overflows."""
    allocate = allocator(out.shape, dtype)

    def run(x: Array) -> Array:
        wide = x.astype(dtype, copy=False)
        highest = np.maximum.reduce(wide, axis=axis, keepdims=True)
        return np.asarray(np.subtract(wide, highest, out=allocate()))

    return run


@kernels.prepare(specs.LOG_SOFTMAX, because="faster")
def log_softmax(logits: TensorType, *, axis: int, out: TensorType) -> Call:
    """Subtract the logarithm of the sum of ``e**(x - max)`` from ``x - max``.

    Where one entry is far above the others the sum is 1 and a little, and the logarithm is that
    little: it is taken in float64, in which it survives.
    """
    if not out.size:
        return lambda x: x
    dtype, narrow = working(out.dtype), out.dtype.numpy
    shifting = _shifting(axis, dtype, out)
    allocate, add = allocator(out.shape, dtype), summer_in_float64(out.shape, axis, dtype)

    def run(x: Array) -> Any:
        shifted = shifting(x)
        total = add(np.exp(shifted, out=allocate()))
        shifted -= np.log(total, out=total).astype(dtype, copy=False)
        return shifted.astype(narrow, copy=False)

    return kernel(run, out)
