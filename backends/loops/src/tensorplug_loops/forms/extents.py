"""Blocks cut out of a tensor, and constants around it."""

from __future__ import annotations

from tensorplug.plugin import Scalar, Shape, TensorType, specs
from tensorplug_loops.forms.loops import Loops
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
    """Read the constant outside of x."""
    loops = Loops(out.shape)
    index = loops.shifted([-before for before, _ in paddings])
    return loops.write(out, loops.read(x, *index, outside=constant_value))
