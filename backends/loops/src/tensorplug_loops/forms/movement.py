"""Other shapes, and other orders of axes."""

from __future__ import annotations

from tensorplug.plugin import Shape, TensorType, specs
from tensorplug_loops.forms.loops import Loops
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()


@forms.form(specs.RESHAPE)
def reshape(x: Operand, *, out: TensorType) -> Form:
    """Copy the elements in row-major order."""
    loops = Loops((out.size,))
    return loops.write(out, loops.read_in_order(x))


@forms.form(specs.EXPAND_DIMS)
def expand_dims(input: Operand, *, out: TensorType) -> Form:
    """Copy the elements in row-major order."""
    return reshape(input, out=out)


@forms.form(specs.TRANSPOSE)
def transpose(x: Operand, *, perm: Shape, out: TensorType) -> Form:
    """Read along the axes in their new order."""
    loops = Loops(out.shape)
    return loops.write(out, loops.read(x, *(loops.axes[perm.index(at)] for at in range(x.rank))))
