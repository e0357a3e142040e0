"""Other shapes, and other orders of axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import Shape, TensorType, specs
from tensorplug_loops.forms.loops import Loops
from tensorplug_loops.forms.table import Form, FormTable, Operand

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    return rearrange(x, x.shape, perm, out)


@forms.form(specs.BROADCAST_TO)
def broadcast_to(x: Operand, *, out: TensorType) -> Form:
    """Repeat the elements along the axes that are stretched."""
    loops = Loops(out.shape)
    return loops.write(out, loops.read_broadcast(x))


def rearrange(x: Operand, apart: Shape, order: Sequence[int], out: TensorType) -> Form:
    """Return the form that reads x, counted as shape ``apart``, with its axes in this order."""
    loops = Loops([apart[axis] for axis in order])
    index = [loops.axes[order.index(axis)] for axis in range(len(apart))]
    return loops.write(out, loops.read(x.reshaped(apart), *index))
