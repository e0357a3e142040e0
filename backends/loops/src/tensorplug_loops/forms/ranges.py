"""Evenly spaced numbers, and identity matrices."""

from __future__ import annotations

from typing import Any

from tensorplug.plugin import (
    Backend,
    DType,
    KernelRefusedError,
    Scalar,
    TensorType,
    expressions,
    specs,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.loops import Loops
from tensorplug_loops.forms.table import Form, FormTable

forms = FormTable()


@forms.form(specs.RANGE)
def range_(*, start: Any, stop: Any, step: Any, backend: Backend, out: TensorType) -> Form:
    """Compute each number from its own position, modulo 2**bits if all are ints."""
    loops = Loops(out.shape)
    (at,) = loops.axes
    if all(isinstance(number, int) for number in (start, stop, step)):
        if out.dtype in dt.INTEGER:
            wide = dt.uint64 if out.dtype.itemsize == 8 else dt.uint32
            start, step = (number % (1 << 8 * wide.itemsize) for number in (start, step))
        elif max(abs(start), abs(step) * out.size) < dt.int32.max // 2:
            wide = dt.int32
        else:
            wide = dt.int64
        if wide is dt.int64 and max(abs(start), abs(step)) > dt.int64.max:
            raise KernelRefusedError(f"start {start} or step {step} needs more than 64 bits")
    else:
        wide = _widest(backend)
    return loops.write(out, expressions.cast(expressions.cast(at, wide) * step + start, out.dtype))


def _widest(backend: Backend) -> DType:
    return dt.float64 if dt.float64 in backend.dtypes else dt.float32


@forms.form(specs.LIN_SPACE)
def linspace(
    *, start: Scalar, stop: Scalar, num: int, endpoint: bool, backend: Backend, out: TensorType
) -> Form:
    """Count from the nearer end, so that both ends are exact."""
    if out.dtype not in dt.FLOATING or isinstance(start, complex) or isinstance(stop, complex):
        raise KernelRefusedError("numbers are counted in real dtypes only")
    loops, steps = Loops(out.shape), max(num - 1 if endpoint else num, 1)
    step = float(stop) / steps - float(start) / steps  # divided first: it does not overflow
    (at,) = loops.axes
    wide = _widest(backend)
    former = expressions.cast(at, wide) * step + float(start)
    latter = expressions.cast(steps - at, wide) * -step + float(stop)
    first_half = at < (num // 2 if num > 1 else 1)
    value = expressions.where(first_half, former, latter)
    return loops.write(out, expressions.cast(value, out.dtype))
