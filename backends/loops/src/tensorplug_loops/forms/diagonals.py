"""Diagonals, bands and triangles of matrices: rows are compared with columns."""

from __future__ import annotations

from tensorplug.plugin import Expression, TensorType, expressions, specs
from tensorplug_loops.forms.loops import Loops, both, whole
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()


def _keep(loops: Loops, out: TensorType, keep: Expression, value: Expression) -> Form:
    zero = expressions.constant(0, out.dtype)
    return loops.write(out, expressions.where(keep, value, zero))


@forms.form(specs.EYE)
def eye(*, k: int, out: TensorType) -> Form:
    """Write ones where the column is k more than the row."""
    loops = Loops(out.shape)
    row, column = loops.axes
    by = max(-out.shape[0], min(k, out.shape[1]))  # beyond, there is no such diagonal
    on = expressions.apply("equal", column - row, by)
    return _keep(loops, out, on, expressions.constant(1, out.dtype))


@forms.form(specs.DIAG)
def diag(x: Operand, *, out: TensorType) -> Form:
    """Keep elements whose indices are twice the same."""
    loops = Loops(out.shape)
    former, latter = loops.axes[: x.rank], loops.axes[x.rank :]
    value = loops.read(x, *former)
    if not x.rank:
        return loops.write(out, value)
    same = (expressions.apply("equal", a, b) for a, b in zip(former, latter, strict=True))
    return _keep(loops, out, both(*same), value)


@forms.form(specs.TRIANGLE)
def triangle(x: Operand, *, upper: bool, k: int, out: TensorType) -> Form:
    """Keep one side of a diagonal."""
    loops = Loops(out.shape)
    by = max(-x.shape[-2], min(k, x.shape[-1]))
    distance = loops.axes[-1] - loops.axes[-2]
    keep = distance >= by if upper else distance <= by
    return _keep(loops, out, keep, loops.read(x, *loops.axes))


@forms.form(specs.MATRIX_BAND_PART)
def matrix_band_part(
    input: Operand, num_lower: Operand, num_upper: Operand, *, out: TensorType
) -> Form:
    """Keep elements near the diagonal; negative numbers keep all of one side."""
    loops = Loops(out.shape)
    value = loops.read(input, *loops.axes)
    lower, upper = (whole(loops.read_in_order(x, ())) for x in (num_lower, num_upper))
    distance = loops.axes[-1] - loops.axes[-2]
    below = expressions.apply("logical_or", lower < 0, -distance <= lower)
    above = expressions.apply("logical_or", upper < 0, distance <= upper)
    return _keep(loops, out, both(below, above), value)
