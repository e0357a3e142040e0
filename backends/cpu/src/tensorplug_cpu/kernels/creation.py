"""Tensors made from attributes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import DType, DTypeError, Scalar, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.arrays import uniform
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.jit.forms import by_form
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.numerics import casting

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


@kernels.prepare(specs.FILL)
def fill(*, value: Scalar | str, out: TensorType) -> Call:
    """Fill with one number, or one text."""
    return without_warnings(uniform(out, value))


@kernels.prepare(specs.ZEROS_LIKE, because="faster")
def zeros_like(x: TensorType, *, out: TensorType) -> Call:
    """Fill with 0."""
    make = uniform(out, 0)
    return without_warnings(lambda _x: make())


@kernels.prepare(specs.ONES_LIKE, because="faster")
def ones_like(x: TensorType, *, out: TensorType) -> Call:
    """Fill with 1."""
    make = uniform(out, 1)
    return without_warnings(lambda _x: make())


@kernels.prepare(specs.RANGE)
@by_form(specs.RANGE)
def range(*, start: float, step: float, dtype: DType, out: TensorType) -> Call:
    """Count: each number from its own position, so that no rounding error adds up."""
    if dtype.kind == "string":
        raise DTypeError("a range has numbers, not strings")
    count = out.shape[0]
    if isinstance(start, int) and isinstance(step, int):
        stop = start + step * count
        if count > 1 and _exact(start, stop, dtype):
            return without_warnings(partial(np.arange, start, stop, step, dtype.numpy))
        return without_warnings(lambda: _whole(start, step, count, dtype))
    convert = casting.converter(dt.float64, dtype)
    return without_warnings(lambda: convert(start + step * np.arange(count, dtype=np.float64)))


def _exact(start: int, stop: int, dtype: DType) -> bool:
    """Return whether NumPy's range has no step that overflows or is rounded."""
    if dtype in dt.INTEGER:
        low, high = dtype.min // 2, dtype.max // 2
        return bool(low < min(start, stop) and max(start, stop) < high)
    return dtype in (dt.float32, dt.float64) and abs(start) + abs(stop) <= 1 << 24


def _whole(start: int, step: int, count: int, dtype: DType) -> Array:
    """Count in integers modulo 2**64, in which every integer dtype is exact."""
    steps = np.arange(count, dtype=np.uint64)
    modular = steps * np.uint64(step % 2**64) + np.uint64(start % 2**64)
    signed = modular if dtype in dt.UNSIGNED else modular.view(np.int64)
    return signed.astype(dtype.numpy)


@kernels.prepare(specs.EYE, because="faster")
def eye(*, k: int, out: TensorType) -> Call:
    """Write ones at equal distances into zeros."""
    (rows, columns), dtype = out.shape, out.dtype.numpy
    count = max(0, min(rows + min(k, 0), columns - max(k, 0)))
    first = max(k, 0) - min(k, 0) * columns
    last = first + count * (columns + 1)

    def run() -> Array:
        result = np.zeros(rows * columns, dtype)
        result[first : last : columns + 1] = 1
        return result.reshape(rows, columns)

    return without_warnings(run)
