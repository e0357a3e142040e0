"""Order: the largest entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.ops import sorting as ops
from tensorplug.tables import KernelTable
from tensorplug_cpu.quiet import quietly

if TYPE_CHECKING:
    from tensorplug.spec import TensorType
    from tensorplug_cpu.arrays import Array, Call

kernels = KernelTable()


def _largest_first(x: Array, k: int) -> Array:
    """Return the indices of the ``k`` largest entries of the last axis, in order.

    A stable ascending sort of the reversed axis, read from its end, puts the lowest index
    first among equals and NaN (NumPy's largest) before everything, without negating a number.
    """
    length = x.shape[-1]
    order = np.argsort(x[..., ::-1], axis=-1, kind="stable")
    return length - 1 - order[..., : length - k - 1 if k < length else None : -1]


@kernels.prepare(ops.TOP_K)
def top_k(x: TensorType, *, k: int) -> Call:
    """Return values and indices of the largest entries."""

    def run(x: Array) -> tuple[Array, Array]:
        indices = _largest_first(x, k)
        return np.take_along_axis(x, indices, axis=-1), indices.astype(np.int32)

    return quietly(run)
