"""Diagonals, bands and triangles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.ops import diagonals as ops
from tensorplug.tables import KernelTable
from tensorplug_cpu.quiet import quietly

if TYPE_CHECKING:
    from tensorplug.shapes import Shape
    from tensorplug.spec import TensorType
    from tensorplug_cpu.arrays import Array, Call

kernels = KernelTable()


@kernels.prepare(ops.DIAG)
def diag(x: TensorType, *, out: TensorType) -> Call:
    """Write at equal distances into zeros."""
    size, shape, dtype = x.size, out.shape, out.dtype.numpy

    def run(x: Array) -> Array:
        result = np.zeros(size * size, dtype)
        result[:: size + 1] = x.reshape(-1)
        return result.reshape(shape)

    return quietly(run)


@kernels.prepare(ops.MATRIX_BAND_PART)
def matrix_band_part(
    input: TensorType, num_lower: TensorType, num_upper: TensorType, *, out: TensorType
) -> Call:
    """Copy, row by row, what lies in the band into zeros."""
    shape = out.shape

    def run(x: Array, num_lower: Array, num_upper: Array) -> Array:
        lower, upper = int(num_lower.reshape(())), int(num_upper.reshape(()))
        rows, columns = shape[-2:]
        return _banded(x, shape, -rows if lower < 0 else -lower, columns if upper < 0 else upper)

    return quietly(run)


@kernels.prepare(ops.TRIANGLE)
def triangle(x: TensorType, *, upper: bool, k: int, out: TensorType) -> Call:
    """Copy, row by row, what lies in the triangle into zeros."""
    shape = out.shape
    low, high = (k, shape[-1]) if upper else (-shape[-2], k)
    return quietly(lambda x: _banded(x, shape, low, high))


def _banded(x: Array, shape: Shape, low: int, high: int) -> Array:
    """Return ``x[..., i, j]`` where ``low <= j - i <= high``, elsewhere 0."""
    rows, columns = shape[-2:]
    row, column = np.ogrid[:rows, :columns]
    apart: Any = column - row
    return np.where((apart >= low) & (apart <= high), x, x.dtype.type(0))
