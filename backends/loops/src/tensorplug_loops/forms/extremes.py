"""Positions of extremes: folds whose state is an element and its position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import Expression, TensorType, expressions, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.loops import Loops, is_nan
from tensorplug_loops.forms.table import Form, FormTable, Operand

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

forms = FormTable()


def first_extreme(
    loops: Loops,
    value: Expression,
    position: Expression,
    axes: Collection[int],
    *,
    smallest: bool = False,
) -> list[Expression]:
    """Fold to the first largest or smallest element and its position.

    A NaN counts as more extreme than any number, and so the first one is found. Elements whose
    position is negative do not count; it is -1 if no element does.
    """

    def combine(former: Sequence[Expression], latter: Sequence[Expression]) -> list[Expression]:
        (a, at), (b, then) = former, latter
        beyond = b < a if smallest else a < b
        nan = expressions.apply(
            "logical_and", is_nan(b), expressions.apply("logical_not", is_nan(a))
        )
        better = expressions.apply("logical_or", beyond, nan)
        better = expressions.apply("logical_or", at < 0, better)
        better = expressions.apply("logical_and", then >= 0, better)
        return [expressions.where(better, b, a), expressions.where(better, then, at)]

    number = expressions.cast(value, dt.uint8) if value.dtype is dt.bool_ else value
    return loops.fold([number, position], [0, -1], combine, axes)


def _arg(x: Operand, axis: int, out: TensorType, *, smallest: bool) -> Form:
    loops = Loops(x.shape)
    position = expressions.cast(loops.axes[axis], out.dtype)
    value = loops.read(x, *loops.axes)
    _, found = first_extreme(loops, value, position, (axis,), smallest=smallest)
    return loops.write(out, found)


@forms.form(specs.ARG_MAX)
def arg_max(x: Operand, *, axis: int, out: TensorType) -> Form:
    """Return the position of the first largest element."""
    return _arg(x, axis, out, smallest=False)


@forms.form(specs.ARG_MIN)
def arg_min(x: Operand, *, axis: int, out: TensorType) -> Form:
    """Return the position of the first smallest element."""
    return _arg(x, axis, out, smallest=True)
