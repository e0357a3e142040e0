"""Tensors side by side: each element is read from the one in which it lies."""

from __future__ import annotations

from itertools import accumulate

from tensorplug.plugin import TensorType, expressions, specs
from tensorplug_loops.forms.loops import Loops
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()


@forms.form(specs.CONCAT)
def concat(xs: list[Operand], *, axis: int, out: TensorType) -> Form:
    """Read each operand from where it begins."""
    loops = Loops(out.shape)
    parts = [x for x in xs if x.size] or xs[:1]
    ends = list(accumulate(x.shape[axis] for x in parts))
    values = [
        loops.read(
            x,
            *loops.axes[:axis],
            loops.axes[axis] - (end - x.shape[axis]),
            *loops.axes[axis + 1 :],
            outside=None if len(parts) == 1 else 0,
        )
        for x, end in zip(parts, ends, strict=True)
    ]
    value = values[-1]
    for former, end in zip(values[-2::-1], ends[-2::-1], strict=True):
        value = expressions.where(loops.axes[axis] < end, former, value)
    return loops.write(out, value)


@forms.form(specs.PACK)
def pack(xs: list[Operand], *, axis: int, out: TensorType) -> Form:
    """Choose the operand by its number."""
    loops = Loops(out.shape)
    number, index = loops.axes[axis], [*loops.axes[:axis], *loops.axes[axis + 1 :]]
    values = [loops.read(x, *index) for x in xs]
    value = values[-1]
    for at, former in reversed(list(enumerate(values[:-1]))):
        value = expressions.where(number <= at, former, value)
    return loops.write(out, value)
