"""Binary search: each step reads at a place that the former ones found."""

from __future__ import annotations

from tensorplug.plugin import Expression, TensorType, expressions, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.loops import Loops, both, clamped, is_nan, quotient, whole
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()


@forms.form(specs.SEARCH_SORTED)
def search_sorted(
    sorted_sequence: Operand, values: Operand, *, side: str, out: TensorType
) -> Form:
    """Halve a window of places in each value's row until it holds one place."""
    loops = Loops(values.shape)
    length = sorted_sequence.shape[-1]
    value = _ordered(loops.read(values, *loops.axes))
    rows = loops.axes[:-1] if sorted_sequence.rank > 1 else []
    first, end = whole(0), whole(length)
    for _ in range(length.bit_length()):
        middle = quotient(first + end, 2)
        here = _ordered(loops.read(sorted_sequence, *rows, clamped(middle, length)))
        beyond = (
            _comes_before(here, value)
            if side == "left"
            else expressions.apply("logical_not", _comes_before(value, here))
        )
        beyond = both(beyond, first < end)
        first = expressions.where(beyond, middle + 1, first)
        end = expressions.where(beyond, end, middle)
    return loops.write(out, expressions.cast(first, out.dtype))


def _ordered(x: Expression) -> Expression:
    return expressions.cast(x, dt.uint8) if x.dtype is dt.bool_ else x


def _comes_before(a: Expression, b: Expression) -> Expression:
    """Return whether ``a`` comes before ``b``; a NaN comes after all numbers."""
    last = both(expressions.apply("logical_not", is_nan(a)), is_nan(b))
    return expressions.apply("logical_or", a < b, last)


@forms.form(specs.LOWER_BOUND)
def lower_bound(sorted_sequence: Operand, values: Operand, *, out: TensorType) -> Form:
    """Return the first place."""
    return search_sorted(sorted_sequence, values, side="left", out=out)


@forms.form(specs.UPPER_BOUND)
def upper_bound(sorted_sequence: Operand, values: Operand, *, out: TensorType) -> Form:
    """Return the last place."""
    return search_sorted(sorted_sequence, values, side="right", out=out)
