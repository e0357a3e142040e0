"""The sigmoid-weighted linear unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import SILU_REACH, KernelTable, TensorType, specs
from tensorplug_cpu.arrays import working
from tensorplug_cpu.outputs import elementwise_kernel

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = KernelTable()


@kernels.prepare(specs.SILU)
def silu(x: TensorType, *, out: TensorType) -> Call:
    """Take ``|x| / (1 + e**|x|)`` from what ReLU gives, which is right on both sides of 0.

    The power's root is multiplied by twice: it may be subnormal where the result is not.
    """
    dtype = working(out.dtype)
    zero, half, one, high, top = (
        dtype.type(number) for number in (0, -0.5, 1, SILU_REACH, np.inf)
    )

    def work(result: Array, x: Array) -> None:
        wide = x.astype(dtype, copy=False)
        less = np.asarray(np.abs(wide))
        root = np.asarray(np.multiply(less, half))
        np.exp(root, out=root)
        total = np.asarray(np.square(root))
        total += one
        less.clip(zero, high, out=less)  # in half the time of minimum
        less *= root
        less *= root
        less /= total
        wide.clip(zero, top, out=root)
        np.subtract(root, less, out=result, casting="same_kind")

    return elementwise_kernel(work, out, in_blocks=True)


@kernels.prepare(specs.SILU_GRAD)
def silu_grad(dy: TensorType, x: TensorType, *, out: TensorType) -> Call:
    """Compute the slope at ``|x|``; at ``-|x|`` it is 1 less that."""
    dtype = working(out.dtype)
    half, one, high = (dtype.type(number) for number in (0.5, 1, SILU_REACH))

    def work(result: Array, dy: Array, x: Array) -> None:
        wide = x.astype(dtype, copy=False)
        size = np.asarray(np.abs(wide))
        size.clip(0, high, out=size)
        below = np.asarray(np.negative(size))
        np.exp(below, out=below)
        below /= np.add(below, one)  # the sigmoid of -|x|
        size *= below
        size += one
        np.subtract(one, below, out=below)
        size *= below
        size -= half
        np.copysign(size, wide, out=size)
        size += half
        np.multiply(size, dy, out=result, casting="same_kind")

    return elementwise_kernel(work, out, in_blocks=True)
