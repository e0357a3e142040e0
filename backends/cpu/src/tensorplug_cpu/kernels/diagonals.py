"""Diagonals, bands and triangles."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.jit.forms import by_form
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


@kernels.prepare(specs.DIAG, because="faster")
def diag(x: TensorType, *, out: TensorType) -> Call:
    """Write at equal distances into zeros."""
    size, shape, dtype = x.size, out.shape, out.dtype.numpy

    def run(x: Array) -> Array:
        result = np.zeros(size * size, dtype)
        result[:: size + 1] = x.reshape(-1)
        return result.reshape(shape)

    return without_warnings(run)


@kernels.prepare(specs.MATRIX_BAND_PART, because="faster")
@by_form(specs.MATRIX_BAND_PART)
def matrix_band_part(
    input: TensorType, num_lower: TensorType, num_upper: TensorType, *, out: TensorType
) -> Call:
    """Cut off one side, then the other."""
    rows, columns = out.shape[-2:]

    def run(x: Array, num_lower: Array, num_upper: Array) -> Array:
        lower, upper = int(num_lower.reshape(())), int(num_upper.reshape(()))
        if lower >= 0:
            x = np.triu(x, -min(lower, rows))
        return np.tril(x, min(upper, columns)) if upper >= 0 else x

    return without_warnings(run)


@kernels.prepare(specs.TRIANGLE, because="faster")
@by_form(specs.TRIANGLE)
def triangle(x: TensorType, *, upper: bool, k: int, out: TensorType) -> Call:
    """Choose between the elements and 0; which of them is known beforehand."""
    (rows, columns), zero = out.shape[-2:], np.zeros((), out.dtype.numpy)
    within = max(-rows, min(k - 1 if upper else k, columns))  # beyond, nothing changes
    if rows * columns > _KEPT:
        return without_warnings(partial(np.triu if upper else np.tril, k=within + upper))
    lower = np.tri(rows, columns, within, dtype=bool)
    choose = (lambda x: np.where(lower, zero, x)) if upper else lambda x: np.where(lower, x, zero)
    return without_warnings(choose)


_KEPT = 1 << 14  # elements up to which a plan keeps which of them are chosen
