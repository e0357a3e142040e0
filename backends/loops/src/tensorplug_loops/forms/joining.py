"""Tensors side by side: each element is read from the one in which it lies."""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import TensorType, expressions, specs
from tensorplug_loops.forms.loops import Loops
from tensorplug_loops.forms.table import Form, FormTable, Operand

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

forms = FormTable()

_MOST: Final = 16  # arrays of a group: more are too long a choice for each element


def _tree(
    xs: Sequence[Operand],
    count: int,
    axis: int,
    out: TensorType,
    join: Callable[[Sequence[Operand], int, TensorType], Form],
    arrays: int,
) -> list[Form]:
    """Join tensors of ``count`` along an axis; many of them in parts, which follow one another."""
    made: list[Form] = []
    most = min(arrays, _MOST) - 1  # besides the output
    while len(xs) > most:
        parts = []
        for first in range(0, len(xs), most):
            part = xs[first : first + most]
            length = sum(x.shape[axis] for x in part) if join is _concat else len(part)
            shape = *out.shape[:axis], length, *out.shape[axis + 1 :]
            type_ = TensorType(out.dtype, shape)
            parts.append(Operand(type_, count + len(made)))
            made.append(join(part, axis, type_))
        xs, join = parts, _concat
    return [*made, join(xs, axis, out)]


@forms.form(specs.CONCAT)
def concat(xs: list[Operand], *, axis: int, out: TensorType) -> Callable[[int], list[Form]]:
    """Read each operand from where it begins."""
    return partial(_tree, [x for x in xs if x.size] or xs[:1], len(xs), axis, out, _concat)


@forms.form(specs.PACK)
def pack(xs: list[Operand], *, axis: int, out: TensorType) -> Callable[[int], list[Form]]:
    """Choose the operand by its number."""
    return partial(_tree, xs, len(xs), axis, out, _pack)


def _concat(xs: Sequence[Operand], axis: int, out: TensorType) -> Form:
    loops = Loops(out.shape)
    ends = list(accumulate(x.shape[axis] for x in xs))
    values = [
        loops.read(
            x,
            *loops.axes[:axis],
            loops.axes[axis] - (end - x.shape[axis]),
            *loops.axes[axis + 1 :],
            outside=None if len(xs) == 1 else 0,
        )
        for x, end in zip(xs, ends, strict=True)
    ]
    value = values[-1]
    for former, end in zip(values[-2::-1], ends[-2::-1], strict=True):
        value = expressions.where(loops.axes[axis] < end, former, value)
    return loops.write(out, value)


def _pack(xs: Sequence[Operand], axis: int, out: TensorType) -> Form:
    loops = Loops(out.shape)
    number, index = loops.axes[axis], [*loops.axes[:axis], *loops.axes[axis + 1 :]]
    values = [loops.read(x, *index) for x in xs]
    value = values[-1]
    for at, former in reversed(list(enumerate(values[:-1]))):
        value = expressions.where(number <= at, former, value)
    return loops.write(out, value)
