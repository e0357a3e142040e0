"""Products added to something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.plugin import TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.arrays import working
from tensorplug_cpu.execution import parallel
from tensorplug_cpu.execution.floating_point import kernel, without_warnings
from tensorplug_cpu.execution.outputs import output_allocator
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()

_BLOCK: Final = 1 << 16  # elements whose product is still in the cache when it is added
_SHARED: Final = 1 << 22  # elements from which several threads are worth their hand-over


@kernels.prepare(specs.MULTIPLY_ADD, because="faster")
def multiply_add(x: TensorType, y: TensorType, z: TensorType, *, out: TensorType) -> Call:
    """Add to the product in its place; float16 is rounded once."""
    narrow = out.dtype.numpy
    dtype = working(out.dtype) if out.dtype in dt.FLOATING else narrow
    if dtype != narrow or not all(operand.size in (1, out.size) for operand in (x, y, z)):

        def spread(x: Array, y: Array, z: Array) -> Array:
            product = np.asarray(np.multiply(x, y, dtype=dtype))
            if product.shape == out.shape:
                product += z
            else:
                product = np.asarray(np.add(product, z, dtype=dtype))
            return product.astype(narrow, copy=False)

        return kernel(spread, out)
    allocate = output_allocator(out)

    def work(result: Array, x: Array, y: Array, z: Array) -> None:
        for start in range(0, len(result), _BLOCK):
            at = slice(start, start + _BLOCK)
            a, b, c = (array if len(array) == 1 else array[at] for array in (x, y, z))
            product = np.multiply(a, b, out=result[at])
            product += c

    def in_blocks(*inputs: Array) -> Array:
        result = allocate()
        flat = [operand.reshape(-1) for operand in inputs]
        parallel.share_out(work, flat, result.reshape(-1))
        return result

    def run(x: Array, y: Array, z: Array) -> Array:
        result = allocate()
        np.multiply(x, y, out=result)
        result += z
        return result

    return without_warnings(in_blocks if out.size >= _SHARED else run)
