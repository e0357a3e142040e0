"""Parts of a tensor: splits, and slices with steps."""

from __future__ import annotations

from typing import Any

from tensorplug.algorithms import Selection, selection
from tensorplug.plugin import Expression, Shape, TensorType, specs
from tensorplug_loops.forms.loops import Loops, broadcast
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()


@forms.form(specs.UNPACK)
def unpack(value: Operand, *, axis: int, out: tuple[TensorType, ...]) -> list[Form]:
    """Read one element along the axis for each output."""
    made = []
    for number, part in enumerate(out):
        loops = Loops(part.shape)
        element = loops.read(value, *loops.axes[:axis], number, *loops.axes[axis:])
        made.append(loops.write(part, element))
    return made


@forms.form(specs.SPLIT_V)
def split_v(x: Operand, *, axis: int, out: tuple[TensorType, ...]) -> list[Form]:
    """Read each output from where it begins."""
    made, first = [], 0
    for part in out:
        loops = Loops(part.shape)
        begin = [first if at == axis else 0 for at in range(x.rank)]
        made.append(loops.write(part, loops.read(x, *loops.shifted(begin))))
        first += part.shape[axis]
    return made


@forms.form(specs.STRIDED_SLICE)
def strided_slice(x: Operand, *, attributes: dict[str, Any], out: TensorType) -> Form:
    """Read at start + step * i; axes that are dropped or new have length 1."""
    taken = selection(x.shape, attributes)
    loops = Loops(taken.counts)
    return loops.write(out, loops.read(x, *_places(loops, taken)))


def _places(loops: Loops, taken: Selection) -> list[int | Expression]:
    """Return the index of each element of a selection, in what it is taken from."""
    ranges = zip(loops.axes, taken.starts, taken.steps, taken.counts, strict=True)
    return [
        start if count == 1 else (axis if step == 1 else axis * step) + start
        for axis, start, step, count in ranges
    ]


def _write(loops: Loops, taken: Selection, out: TensorType, value: Any, initial: Any) -> Form:
    """Return the form that writes a value to each element of a selection."""
    return loops.write_at(out, _places(loops, taken), value, "last", initial)


@forms.form(specs.STRIDED_SLICE_GRAD)
def strided_slice_grad(
    dy: Operand, *, shape: Shape, attributes: dict[str, Any], out: TensorType
) -> Form:
    """Write dy where the slice took an element, into zeros."""
    taken = selection(shape, attributes)
    loops = Loops(taken.counts)
    return _write(loops, taken, out, loops.read_in_order(dy), 0)


@forms.form(specs.STRIDED_SLICE_UPDATE)
def strided_slice_update(
    tensor: Operand, value: Operand, *, attributes: dict[str, Any], out: TensorType
) -> Form:
    """Write the value, which broadcasts, into a copy."""
    taken = selection(tensor.shape, attributes)
    loops = Loops(taken.counts)
    whole = loops.read_whole(tensor)
    along = (axis for axis, count in zip(loops.axes, taken.counts, strict=True) if count != 1)
    index = [0 if length == 1 else next(along) for length in taken.shape]
    new = loops.read(value, *broadcast(value.shape, index, taken.shape))
    return _write(loops, taken, out, new, whole)
