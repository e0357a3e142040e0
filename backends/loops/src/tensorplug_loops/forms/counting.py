"""Sums by segment, and counts: written at the numbers of segments."""

from __future__ import annotations

from tensorplug.plugin import TensorType, expressions, specs
from tensorplug_loops.forms.loops import Loops, whole
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()


@forms.form(specs.UNSORTED_SEGMENT_SUM)
def unsorted_segment_sum(x: Operand, segment_ids: Operand, *, out: TensorType) -> Form:
    """Add each element to its segment."""
    loops = Loops(x.shape)
    rank = segment_ids.rank
    segment = whole(loops.read(segment_ids, *loops.axes[:rank]))
    value = loops.read(x, *loops.axes)
    return loops.write_at(out, [segment, *loops.axes[rank:]], value, "sum", 0)


@forms.form(specs.BINCOUNT)
def bincount(x: Operand, weights: Operand | None, *, out: TensorType) -> Form:
    """Add each weight to the count of its number."""
    flat = x.reshaped((x.size,))
    if weights is not None and weights.size:
        weights = weights.reshaped((x.size,))
    return dense_bincount(flat, weights, binary_output=False, out=out)


@forms.form(specs.DENSE_BINCOUNT)
def dense_bincount(
    x: Operand, weights: Operand | None, *, binary_output: bool, out: TensorType
) -> Form:
    """Count in each row, or tell what occurs."""
    loops = Loops(x.shape)
    number = whole(loops.read(x, *loops.axes))
    value = expressions.constant(1, out.dtype)
    if weights is not None and weights.size and not binary_output:
        value = loops.read(weights, *loops.axes)
    combine = "last" if binary_output else "sum"
    return loops.write_at(out, [*loops.axes[:-1], number], value, combine, 0)
