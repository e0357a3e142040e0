"""Assignment to a slice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.algorithms import selection
from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


@kernels.prepare(specs.STRIDED_SLICE_UPDATE, because="faster")
def strided_slice_update(
    tensor: TensorType, value: TensorType, *, attributes: dict[str, Any]
) -> Call:
    """Copy, then write into the slice."""
    taken = selection(tensor.shape, attributes)
    key: Any = (*taken.slices(), ...)
    shape = taken.shape

    def run(tensor: Array, value: Array) -> Array:
        result = np.array(tensor, order="C")
        # Adding or removing axes of length 1 keeps the view.
        result[key].reshape(shape, copy=False)[...] = value
        return result

    return without_warnings(run)
