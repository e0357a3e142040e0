"""Blocks cut out of a tensor, and constants around it."""

from __future__ import annotations

from tensorplug.plugin import Scalar, Shape, TensorType, expressions, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.loops import Loops, both
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()


@forms.form(specs.SLICE)
def slice_(x: Operand, *, begin: Shape, out: TensorType) -> Form:
    """Read from the begin on."""
    loops = Loops(out.shape)
    return loops.write(out, loops.read(x, *loops.shifted(begin)))


@forms.form(specs.PAD_V2)
def pad(
    x: Operand,
    *,
    paddings: tuple[tuple[int, int], ...],
    constant_value: Scalar,
    out: TensorType,
) -> Form:
    """Read the constant outside of x; a complex one is chosen, as its parts may differ."""
    loops = Loops(out.shape)
    index = loops.shifted([-before for before, _ in paddings])
    if out.dtype not in dt.COMPLEX or not any(map(any, paddings)):
        return loops.write(out, loops.read(x, *index, outside=constant_value))
    inside = [both(at >= 0, at < length) for at, length in zip(index, x.shape, strict=True)]
    value = loops.read(x, *index, outside=0)
    constant = expressions.constant(constant_value, x.dtype)
    return loops.write(out, expressions.where(both(*inside), value, constant))
