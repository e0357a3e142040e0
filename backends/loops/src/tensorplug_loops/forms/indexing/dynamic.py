"""Windows whose place is data."""

from __future__ import annotations

from dataclasses import replace

from tensorplug.plugin import Expression, Shape, TensorType, expressions, specs
from tensorplug_loops.forms.loops import Loops, both, clamped, from_end, whole
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()


def _places(loops: Loops, starts: Operand, lengths: Shape, sizes: Shape) -> list[Expression]:
    """Return where the window begins along each axis that is no batch axis."""
    lead = loops.axes[: starts.rank - 1]
    return [
        whole(0)
        if size == length
        else clamped(from_end(loops.read(starts, *lead, axis), length), length - size + 1)
        for axis, (length, size) in enumerate(zip(lengths, sizes, strict=True))
    ]


@forms.form(specs.DYNAMIC_SLICE)
def dynamic_slice(x: Operand, starts: Operand, *, sizes: Shape, out: TensorType) -> Form:
    """Read from where the window begins."""
    loops, batch = Loops(out.shape), starts.rank - 1
    begin = _places(loops, starts, x.shape[batch:], sizes)
    index = [axis + at for axis, at in zip(loops.axes[batch:], begin, strict=True)]
    return loops.write(out, loops.read(x, *loops.axes[:batch], *index))


@forms.form(specs.DYNAMIC_UPDATE_SLICE)
def dynamic_update_slice(x: Operand, update: Operand, starts: Operand, *, out: TensorType) -> Form:
    """Choose between x and the update, in each element."""
    loops, batch = Loops(out.shape), starts.rank - 1
    old = loops.read(x, *loops.axes)
    sizes = update.shape[batch:]
    begin = _places(loops, starts, x.shape[batch:], sizes)
    index = [axis - at for axis, at in zip(loops.axes[batch:], begin, strict=True)]
    if not update.size:
        return loops.write(out, old)
    new = loops.read(update, *loops.axes[:batch], *index, outside=0)
    inside = [
        both(at >= 0, at < size)
        for at, size, length in zip(index, sizes, x.shape[batch:], strict=True)
        if size != length
    ]
    return loops.write(out, expressions.where(both(*inside), new, old) if inside else new)


def insertion(update: TensorType, starts: TensorType, out: TensorType) -> Form:
    """Return the form that writes the window of an output, and leaves the rest as it is.

    Of the update and the starts, whose window lies inside, so that no index has to be tested.
    """
    loops, batch = Loops(update.shape), starts.rank - 1
    value = loops.read(Operand(update, 0), *loops.axes)
    begin = _places(loops, Operand(starts, 1), out.shape[batch:], update.shape[batch:])
    index = [axis + at for axis, at in zip(loops.axes[batch:], begin, strict=True)]
    form = loops.write_at(out, [*loops.axes[:batch], *index], value, None, None)
    return form._replace(group=replace(form.group, name="insert a window"))
