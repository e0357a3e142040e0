"""Reductions along axes."""

from __future__ import annotations

from math import prod
from typing import Any, Final

from tensorplug.plugin import KernelSpec, Shape, TensorType, expressions, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.loops import Loops
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()

_EXTREMES: Final = ("max", "min")


def _reduced(op: Any, x: Operand, axes: Shape, out: TensorType) -> Form:
    """Reduce; the extremes of booleans are those of bytes."""
    if not axes:
        loops = Loops(out.shape)
        return loops.write(out, expressions.cast(loops.read_in_order(x), out.dtype))
    if op in _EXTREMES and not prod(x.shape[at] for at in axes):  # of booleans alone
        return Loops(out.shape).write(out, expressions.constant(op == "min", out.dtype))
    loops = Loops(x.shape)
    dtype = dt.uint8 if out.dtype is dt.bool_ else out.dtype
    value = expressions.cast(loops.read(x, *loops.axes), dtype)
    return loops.write(out, expressions.cast(loops.reduce(op, value, axes), out.dtype))


def _register(spec: KernelSpec, op: str) -> None:
    @forms.form(spec)
    def form(x: Operand, *, axis: Shape, out: TensorType) -> Form:
        return _reduced(op, x, axis, out)


for _spec, _op in {
    specs.SUM: "sum",
    specs.PROD: "prod",
    specs.MIN: "min",
    specs.ANY: "max",
    specs.ALL: "min",
}.items():
    _register(_spec, _op)


@forms.form(specs.MAX)
def max_(x: Operand, *, reduction_indices: Shape, out: TensorType) -> Form:
    """Return the largest element; only this kernel has that attribute name."""
    return _reduced("max", x, reduction_indices, out)


@forms.form(specs.MEAN, dtypes=dt.FLOATING)
def mean(x: Operand, *, axis: Shape, out: TensorType) -> Form:
    """Divide the sum once by the number of elements, and round once."""
    count, wide = prod(x.shape[at] for at in axis), out.dtype.compute
    loops = Loops(x.shape)
    value = expressions.cast(loops.read(x, *loops.axes), wide)
    total = loops.reduce("sum", value, axis) if axis else value
    return loops.write(out, expressions.cast(total / count, out.dtype))
