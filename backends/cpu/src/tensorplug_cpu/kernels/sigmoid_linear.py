"""The sigmoid-weighted linear unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.ops import sigmoid_linear as ops
from tensorplug.tables import KernelTable
from tensorplug_cpu.arrays import working
from tensorplug_cpu.filling import filling

if TYPE_CHECKING:
    from tensorplug.spec import TensorType
    from tensorplug_cpu.arrays import Array, Call

kernels = KernelTable()


@kernels.prepare(ops.SILU)
def silu(x: TensorType, *, out: TensorType) -> Call:
    """Divide by ``1 + e**-|x|``, after multiplying by the power below 0.

    It multiplies by its root twice: the power may be subnormal where the result is not.
    """
    dtype = working(out.dtype)
    zero, half, one, low = (dtype.type(each) for each in (0, 0.5, 1, -ops.REACH))

    def work(result: Array, x: Array) -> None:
        wide = x.astype(dtype, copy=False)
        root = np.asarray(np.abs(wide))
        root *= -half
        np.exp(root, out=root)
        total = np.asarray(np.square(root))
        total += one
        np.maximum(root, np.greater_equal(wide, zero).astype(dtype), out=root)  # 1 above 0
        product = np.asarray(np.maximum(wide, low))
        product *= root
        product *= root
        np.divide(product, total, out=result, casting="same_kind")

    return filling(work, out, in_pieces=True)
