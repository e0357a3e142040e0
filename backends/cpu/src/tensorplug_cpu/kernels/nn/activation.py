"""Activation functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.algorithms import SELU_ALPHA, SELU_SCALE
from tensorplug.plugin import TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.arrays import element, working
from tensorplug_cpu.execution.floating_point import kernel, without_warnings
from tensorplug_cpu.execution.outputs import elementwise_kernel, output_allocator
from tensorplug_cpu.execution.rowwise import RowSums, by_blocks
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.memory.pool import allocator
from tensorplug_cpu.summation import summer, summer_in_float64

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()

_SHORT_ROW: Final = 256  # elements up to which a row is too short for loops of its own
_MANY: Final = 1 << 13  # elements from which rows are taken in blocks
_CLOSE: Final = 8  # the range of scores that may be shifted by the same number


@kernels.prepare(specs.RELU, because="faster")
def relu(x: TensorType, *, out: TensorType) -> Call:
    """Cut off below 0; NaN stays."""
    if x.dtype in dt.UNSIGNED:
        return lambda x: x
    top = x.dtype.max if x.dtype in dt.SIGNED else np.inf
    return _bounded(out, element(top, out.dtype))


@kernels.prepare(specs.RELU6, because="faster")
def relu6(x: TensorType, *, out: TensorType) -> Call:
    """Cut off below 0 and above 6; NaN stays."""
    return _bounded(out, element(6, out.dtype))


def _bounded(out: TensorType, top: Array) -> Call:
    """Return the kernel that cuts off below 0 and above ``top``."""
    zero, signed_zero = element(0, out.dtype), out.dtype in dt.FLOATING
    unbounded = signed_zero and np.isinf(top)
    # NumPy's clip runs Python code, which costs as much as a pass over 8 KiB.
    small = out.nbytes <= 1 << 13

    def work(result: Array, x: Array) -> None:
        if not small:
            x.clip(zero, top, out=result)
        elif unbounded:
            np.maximum(x, zero, out=result)
        else:
            np.minimum(np.maximum(x, zero, out=result), top, out=result)
        if signed_zero:  # the maximum of 0.0 and -0.0 may be either
            np.add(result, zero, out=result)

    return elementwise_kernel(work, out, in_blocks=signed_zero)


def _expm1(x: Array) -> Array:
    """Return ``e**x - 1``, into ``x``."""
    if x.dtype == np.float64:
        return np.expm1(x, out=x)
    # NumPy computes exp and tanh of float32 several numbers at a time, expm1 one by one.
    powers = np.asarray(np.exp(x))
    powers += 1
    x *= np.float32(0.5)
    np.tanh(x, out=x)
    x *= powers
    return x


def _exponential(out: TensorType, scale: float, scale_below: float) -> Call:
    """Return the kernel of ``scale * x`` above 0 and ``scale_below * (e**x - 1)`` below."""
    dtype, narrow = working(out.dtype), out.dtype.numpy
    zero, above, below = (dtype.type(number) for number in (0, scale, scale_below))

    def run(x: Array) -> Array:
        wide = x.astype(dtype, copy=False)
        result = _expm1(np.asarray(np.minimum(wide, zero)))
        if scale_below != 1:
            result *= below
        positive = np.asarray(np.maximum(wide, zero))
        if scale != 1:
            positive *= above
        result += positive  # one of the two is 0
        return result.astype(narrow, copy=False)

    return without_warnings(run)


@kernels.prepare(specs.ELU, because="faster")
def elu(x: TensorType, *, out: TensorType) -> Call:
    """Add ``x`` cut off below 0 and ``e**x - 1`` of ``x`` cut off above."""
    return _exponential(out, 1, 1)


@kernels.prepare(specs.SELU, because="faster")
def selu(x: TensorType, *, out: TensorType) -> Call:
    """Scale what ELU adds."""
    return _exponential(out, SELU_SCALE, SELU_SCALE * SELU_ALPHA)


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


@kernels.prepare(specs.PRELU, because="faster")
def prelu(x: TensorType, alpha: TensorType, *, out: TensorType) -> Call:
    """Multiply by ``alpha`` below 0."""
    return kernel(lambda x, alpha: np.where(x < 0, x * alpha, x), out)


@kernels.prepare(specs.SOFTPLUS, because="faster")
def softplus(x: TensorType, *, out: TensorType) -> Call:
    """Add ``max(x, 0)`` and ``log(1 + e**-|x|)``.

    The logarithm is corrected by what ``1 + u`` has rounded away of ``u``, which keeps all digits
    and takes half the time of ``log1p``.
    """
    dtype, narrow = working(out.dtype), out.dtype.numpy
    zero, one = dtype.type(0), dtype.type(1)

    def run(x: Array) -> Array:
        wide = x.astype(dtype, copy=False)
        small = np.asarray(np.abs(wide))
        np.negative(small, out=small)
        np.exp(small, out=small)
        total = np.asarray(np.add(small, one))
        work = np.asarray(np.subtract(total, one))
        small -= work
        small /= total
        np.log(total, out=total)
        total += small
        total += np.maximum(wide, zero, out=work)
        return total.astype(narrow, copy=False)

    return without_warnings(run)


@kernels.prepare(specs.STEP, because="faster")
def step(x: TensorType, *, alpha: float, out: TensorType) -> Call:
    """Make the two levels from the bits of a comparison; NaN stays."""
    whole = np.dtype(f"u{out.dtype.itemsize}")
    high, low = element(1, out.dtype).view(whole), element(alpha, out.dtype).view(whole)
    either, floating = high ^ low, out.dtype in dt.FLOATING

    def run(x: Array) -> Array:
        bits = np.asarray(np.multiply(x > 0, either, dtype=whole))
        np.bitwise_xor(bits, low, out=bits)
        result = bits.view(out.dtype.numpy)
        if floating and x.size and np.isnan(np.maximum.reduce(x, axis=None)):
            np.copyto(result, x, where=np.isnan(x))
        return result

    return without_warnings(run)


@kernels.prepare(specs.SIGMOID, because="faster")
def sigmoid(x: TensorType, *, out: TensorType) -> Call:
    """Compute from ``e**-|x|``, which neither overflows nor loses small results."""
    if out.dtype not in dt.FLOATING:
        return kernel(_complex_sigmoid, out)
    dtype = working(out.dtype)
    zero, one = dtype.type(0), dtype.type(1)

    def work(result: Array, x: Array) -> None:
        wide = x.astype(dtype, copy=False)
        below = np.asarray(np.negative(wide))
        np.minimum(below, wide, out=below)
        np.exp(below, out=below)
        total = below + one
        np.maximum(below, np.greater_equal(wide, zero).astype(dtype), out=below)  # 1 above 0
        np.divide(below, total, out=result, casting="same_kind")

    return elementwise_kernel(work, out, in_blocks=True)


def _complex_sigmoid(x: Array) -> Any:
    below = x.real < 0
    small = np.exp(np.where(below, x, -x))
    return np.where(below, small, 1) / (1 + small)


def _shifting(axis: int, dtype: np.dtype[Any], out: TensorType) -> Call:
    """Return a function that subtracts the maximum, so that no power of e overflows."""
    allocate = allocator(out.shape, dtype)

    def run(x: Array) -> Array:
        wide = x.astype(dtype, copy=False)
        highest = np.maximum.reduce(wide, axis=axis, keepdims=True)
        return np.asarray(np.subtract(wide, highest, out=allocate()))

    return run


@kernels.prepare(specs.SOFTMAX, because="faster")
def softmax(logits: TensorType, *, dim: int, out: TensorType) -> Call:
    """Divide ``e**(x - max)`` by its sum."""
    if not out.size:
        return lambda x: x
    dtype, narrow = working(out.dtype), out.dtype.numpy
    if dim == out.rank - 1 and out.shape[-1] <= _SHORT_ROW and out.size >= _MANY:
        return _softmax_of_rows(out, dtype)
    shifting = _shifting(dim, dtype, out)
    add = summer(out.shape, (dim,), dtype, keep_dims=True)

    def run(x: Array) -> Any:
        powers = shifting(x)
        np.exp(powers, out=powers)
        powers /= add(powers)
        return powers.astype(narrow, copy=False)

    return kernel(run, out)


def _softmax_of_rows(out: TensorType, dtype: np.dtype[Any]) -> Call:
    """Return softmax of many short rows, some at a time.

    Finding the largest of each row and subtracting it would take longer than the powers do.
    Where all of a block are close to one another, the largest of all serves as well.
    """
    allocate, length = output_allocator(out), out.shape[-1]
    rows, along = out.size // length, RowSums(length, dtype)

    def run(x: Array) -> Array:
        result, source = allocate().reshape(rows, length), x.reshape(rows, length)

        def work(block: slice) -> None:
            target, wide = result[block], source[block].astype(dtype, copy=False)
            powers = target if dtype == target.dtype else np.empty(target.shape, dtype)
            highest = np.maximum.reduce(wide, axis=None)
            if not highest - np.minimum.reduce(wide, axis=None) <= _CLOSE:  # or one is NaN
                highest = np.maximum.reduce(wide, axis=1, keepdims=True)
            np.subtract(wide, highest, out=powers)
            np.exp(powers, out=powers)
            total = along.sums(powers)
            np.divide(1, total, out=total)
            np.multiply(powers, total, out=target, casting="same_kind")

        by_blocks(work, rows, length)
        return result.reshape(out.shape)

    return without_warnings(run)


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
