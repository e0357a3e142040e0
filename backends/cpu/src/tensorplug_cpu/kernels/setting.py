"""Assignment to a slice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract.tables import KernelTable
from tensorplug.ops.indexing import setting as ops
from tensorplug.ops.indexing import slicing
from tensorplug_cpu.quiet import quietly

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug_cpu.arrays import Array, Call

kernels = KernelTable()


@kernels.prepare(ops.STRIDED_SLICE_UPDATE)
def strided_slice_update(
    tensor: TensorType, value: TensorType, *, attributes: dict[str, Any]
) -> Call:
    """Copy, then write into the slice."""
    taken = slicing.selection(tensor.shape, attributes)
    key: Any = (*taken.slices(), ...)
    shape = taken.shape

    def run(tensor: Array, value: Array) -> Array:
        result = np.array(tensor, order="C")
        # Axes of length 1 that go or come leave a view a view.
        result[key].reshape(shape, copy=False)[...] = value
        return result

    return quietly(run)
