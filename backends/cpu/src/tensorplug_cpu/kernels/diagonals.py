"""Diagonals, bands and triangles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import TensorType, specs
from tensorplug_cpu.execution.floating_point import without_warnings
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
def matrix_band_part(
    input: TensorType, num_lower: TensorType, num_upper: TensorType, *, out: TensorType
) -> Call:
    """Choose between the elements and 0."""
    (rows, columns), zero = out.shape[-2:], np.zeros((), out.dtype.numpy)

    def run(x: Array, num_lower: Array, num_upper: Array) -> Array:
        lower, upper = int(num_lower.reshape(())), int(num_upper.reshape(()))
        keep = np.ones((rows, columns), bool)
        if lower >= 0:
            keep &= ~_lower(rows, columns, -lower - 1)
        if upper >= 0:
            keep &= _lower(rows, columns, upper)
        return np.where(keep, x, zero)

    return without_warnings(run)


@kernels.prepare(specs.TRIANGLE, because="faster")
def triangle(x: TensorType, *, upper: bool, k: int, out: TensorType) -> Call:
    """Choose between the elements and 0; which of them is known beforehand."""
    (rows, columns), zero = out.shape[-2:], np.zeros((), out.dtype.numpy)
    diagonal = k - 1 if upper else k
    small = _lower(rows, columns, diagonal) if rows * columns <= _KEPT else None

    def run(x: Array) -> Array:
        lower = _lower(rows, columns, diagonal) if small is None else small
        return np.where(lower, zero, x) if upper else np.where(lower, x, zero)

    return without_warnings(run)


_KEPT = 1 << 14  # elements up to which a plan keeps which of them are chosen


def _lower(rows: int, columns: int, k: int) -> Array:
    """Return True where ``j - i <= k``."""
    within = max(-rows, min(k, columns))  # beyond, nothing changes, and a number may be too large
    return np.tri(rows, columns, within, dtype=bool)
