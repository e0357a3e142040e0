"""The sigmoid-weighted linear unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.algorithms import SILU_REACH
from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.arrays import working
from tensorplug_cpu.execution.outputs import elementwise_kernel
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


@kernels.prepare(specs.SILU, because="faster")
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


@kernels.prepare(specs.SILU_GRAD, because="faster")
def silu_grad(dy: TensorType, x: TensorType, *, out: TensorType) -> Call:
    """Compute ``s(x) * (1 + x * s(-x))``; s(x) has the power's root as a factor twice below 0."""
    dtype = working(out.dtype)
    zero, half, one, high = (dtype.type(number) for number in (0, -0.5, 1, SILU_REACH))

    def work(result: Array, dy: Array, x: Array) -> None:
        wide = x.astype(dtype, copy=False).clip(-high, high)
        side = np.asarray(np.abs(wide))
        side *= half
        np.exp(side, out=side)
        slope = np.asarray(np.square(side))
        total = np.add(slope, one)
        below = np.asarray(np.less(wide, zero).astype(dtype))
        np.maximum(slope, below, out=slope)  # the power, and 1 below 0
        slope /= total
        slope *= wide
        slope += one
        slope /= total
        np.subtract(one, below, out=below)
        np.maximum(side, below, out=side)  # the root below 0, and 1 above
        slope *= side
        slope *= side
        np.multiply(slope, dy, out=result, casting="same_kind")

    return elementwise_kernel(work, out, in_blocks=True)
