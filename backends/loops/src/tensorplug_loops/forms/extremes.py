"""Positions of extremes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.algorithms import lowest
from tensorplug.plugin import Expression, TensorType, expressions, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.loops import Loops, both, either, is_nan, is_number
from tensorplug_loops.forms.table import Form, FormTable, Operand

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

forms = FormTable()


def first_largest(
    loops: Loops, value: Expression, number: Expression, axes: Collection[int]
) -> list[Expression]:
    """Fold to the first largest element and its number, -1 if none is larger than the lowest.

    A NaN is larger than any number. Numbers are as wide as elements, so that they fill vectors
    alike.
    """

    def combine(former: Sequence[Expression], latter: Sequence[Expression]) -> list[Expression]:
        (a, at), (b, then) = former, latter
        larger = a < b
        if a.dtype in dt.FLOATING:
            no_more = expressions.apply("less_equal", b, a)
            larger = both(expressions.apply("logical_not", no_more), is_number(a))
        return [expressions.where(larger, b, a), expressions.where(larger, then, at)]

    wide = dt.int64 if value.dtype.itemsize == 8 else dt.int32
    least = lowest(value.dtype)
    return loops.fold([value, expressions.cast(number, wide)], [least, -1], combine, axes)


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
