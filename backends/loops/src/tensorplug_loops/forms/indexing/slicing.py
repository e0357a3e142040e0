"""Parts of a tensor: splits, and slices with steps."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorplug.algorithms import Selection, selection
from tensorplug.plugin import Expression, Shape, TensorType, expressions, specs
from tensorplug_loops.forms.loops import Loops, both, broadcast, flat, quotient, rest, unravel
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
    ranges = zip(loops.axes, taken.starts, taken.steps, taken.counts, strict=True)
    index = [
        start if count == 1 else (axis if step == 1 else axis * step) + start
        for axis, start, step, count in ranges
    ]
    return loops.write(out, loops.read(x, *index))


def selected(loops: Loops, taken: Selection) -> tuple[list[Expression], Expression | None]:
    """Return the index in the selection for each element of what it is taken from.

    Also return whether an element lies in it; None if all do.
    """
    index, conditions = [], []
    for axis, length, start, step, count in zip(
        loops.axes, loops.shape, taken.starts, taken.steps, taken.counts, strict=True
    ):
        if (start, step, count) == (0, 1, length):
            index.append(axis)
            continue
        distance = axis - start if step > 0 else start - axis
        at = quotient(distance, abs(step))
        index.append(at)
        conditions += [distance >= 0, at < count]
        if abs(step) > 1:
            conditions.append(expressions.apply("equal", rest(distance, abs(step)), 0))
    return index, both(*conditions) if conditions else None


@forms.form(specs.STRIDED_SLICE_GRAD)
def strided_slice_grad(
    dy: Operand, *, shape: Shape, attributes: dict[str, Any], out: TensorType
) -> Form:
    """Read dy where the slice took an element."""
    taken = selection(shape, attributes)
    loops = Loops(shape)
    index, inside = selected(loops, taken)
    value = loops.read(dy.reshaped(taken.counts), *index, outside=0)
    if inside is not None:
        zero = expressions.constant(0, out.dtype)
        value = expressions.where(inside, value, zero)
    return loops.write(out, value)


@forms.form(specs.STRIDED_SLICE_UPDATE)
def strided_slice_update(
    tensor: Operand, value: Operand, *, attributes: dict[str, Any], out: TensorType
) -> Form:
    """Read the value, which broadcasts, where the slice takes an element."""
    taken = selection(tensor.shape, attributes)
    loops = Loops(tensor.shape)
    index, inside = selected(loops, taken)
    old = loops.read(tensor, *loops.axes)
    if value.size == prod(taken.counts):
        new = loops.read(value.reshaped(taken.counts), *index, outside=0)
    else:
        place = unravel(flat(index, taken.counts), taken.shape)
        new = loops.read(value, *broadcast(value.shape, place, taken.shape), outside=0)
    return loops.write(out, new if inside is None else expressions.where(inside, new, old))
