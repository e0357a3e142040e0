"""Binary search: each step reads at a place that the former ones found."""

from __future__ import annotations

from tensorplug.plugin import Expression, TensorType, expressions, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.loops import Loops, both, is_nan, whole
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()


@forms.form(specs.SEARCH_SORTED)
def search_sorted(
    sorted_sequence: Operand, values: Operand, *, side: str, out: TensorType
) -> Form:
    """Count the elements that come before a value, by powers of two.

    The first step decides between two parts of ``2**k - 1`` elements, so no later one leaves the
    row. Source: Shar's search, in Knuth, The Art of Computer Programming, volume 3, section 6.2.1.
    """
    loops = Loops(values.shape)
    length = sorted_sequence.shape[-1]
    value = _ordered(loops.read(values, *loops.axes))
    rows = loops.axes[:-1] if sorted_sequence.rank > 1 else []
    count = whole(0)
    power = 1 << max(0, length.bit_length() - 1)
    first = length - power + 1
    while length and power:
        here = _ordered(loops.read(sorted_sequence, *rows, count + (power - 1)))
        before = (
            _comes_before(here, value)
            if side == "left"
            else expressions.apply("logical_not", _comes_before(value, here))
        )
        count = expressions.where(before, count + first, count)
        power //= 2
        first = power
    return loops.write(out, expressions.cast(count, out.dtype))


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
