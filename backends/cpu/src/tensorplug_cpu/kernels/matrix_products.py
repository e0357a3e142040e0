"""Matrix products by NumPy's BLAS, or by native loops where they are faster."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import KernelTable, TensorType, specs
from tensorplug_cpu.arrays import working
from tensorplug_cpu.floating_point import kernel, without_warnings
from tensorplug_cpu.jit import matrices

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = KernelTable()


@kernels.prepare(specs.BATCH_MAT_MUL)
def batch_mat_mul(
    a: TensorType, b: TensorType, *, transpose_a: bool, transpose_b: bool, out: TensorType
) -> Call:
    """Multiply the last two axes; a narrow float in float32, which BLAS has, rounded once.

    Many matrices times one are the rows of all of them times that one: a single product.
    """
    work, narrow = working(out.dtype), out.dtype.numpy
    turned = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    native = matrices.product(a.shape, b.shape, work, **turned)
    if native is not None:
        return without_warnings(
            lambda a, b: native(a.astype(work, copy=False), b.astype(work, copy=False)).astype(
                narrow, copy=False
            )
        )
    joined = a.rank > 2 and b.rank == 2 and not transpose_a
    rows = (prod(a.shape[:-1]), a.shape[-1])

    def run(a: Array, b: Array) -> Any:
        if joined:
            return product(a.reshape(rows), b).reshape(out.shape)
        return product(a, b)

    def product(a: Array, b: Array) -> Any:
        left = a.swapaxes(-1, -2) if transpose_a else a
        right = b.swapaxes(-1, -2) if transpose_b else b
        if work is narrow:
            return np.matmul(left, right)
        return np.matmul(left.astype(work), right.astype(work)).astype(narrow)

    return kernel(run, out)
