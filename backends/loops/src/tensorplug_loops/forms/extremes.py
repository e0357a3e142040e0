"""Positions of extremes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import Expression, TensorType, expressions, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.loops import Loops, both, either, is_nan
from tensorplug_loops.forms.table import Form, FormTable, Operand

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

forms = FormTable()


def first_largest(
    loops: Loops, value: Expression, position: Expression, axes: Collection[int]
) -> list[Expression]:
    """Fold to the first largest element and its position; a NaN is larger than any number.

    Elements whose position is negative do not count; it is -1 if no element does.
    """

    def combine(former: Sequence[Expression], latter: Sequence[Expression]) -> list[Expression]:
        (a, at), (b, then) = former, latter
        nan = both(is_nan(b), expressions.apply("logical_not", is_nan(a)))
        better = both(then >= 0, either(at < 0, a < b, nan))
        return [expressions.where(better, b, a), expressions.where(better, then, at)]

    return loops.fold([value, position], [0, -1], combine, axes)


def _arg(op: str, x: Operand, axis: int, out: TensorType) -> Form:
    """Find the extreme, then the first element that equals it; if it is NaN, the first NaN."""
    loops = Loops(x.shape)
    value = loops.read(x, *loops.axes)
    value = expressions.cast(value, dt.uint8) if value.dtype is dt.bool_ else value
    extreme = loops.reduce(op, value, (axis,))
    found = either(expressions.apply("equal", value, extreme), is_nan(value))
    position = expressions.cast(loops.axes[axis], out.dtype)
    first = expressions.where(found, position, x.shape[axis])
    return loops.write(out, loops.reduce("min", first, (axis,)))


@forms.form(specs.ARG_MAX)
def arg_max(x: Operand, *, axis: int, out: TensorType) -> Form:
    """Return the position of the first largest element."""
    return _arg("max", x, axis, out)


@forms.form(specs.ARG_MIN)
def arg_min(x: Operand, *, axis: int, out: TensorType) -> Form:
    """Return the position of the first smallest element."""
    return _arg("min", x, axis, out)
