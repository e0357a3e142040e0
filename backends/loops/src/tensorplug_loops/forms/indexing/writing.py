"""Writing at indices: sums, and the last update of each place.

Updates whose index is out of range are not written.
"""

from __future__ import annotations

from typing import Any, Final

from tensorplug.algorithms import highest, lowest, scatter_depth
from tensorplug.plugin import Expression, Scalar, Shape, TensorType, expressions, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.loops import Loops, from_end
from tensorplug_loops.forms.table import Form, FormTable, Operand

forms = FormTable()

_REDUCTIONS: Final = {"add": "sum", "multiply": "prod", "max": "max", "min": "min"}


def _scatter(
    indices: Operand,
    updates: Operand,
    met: Operand | Scalar,
    combine: Any,
    out: TensorType,
    value: Expression | None = None,
) -> Form:
    """Loop over the updates, which ``met`` the elements of a tensor, or a number.

    ``value``: what is written in their place.
    """
    depth = scatter_depth(indices.shape, updates.shape, out.shape)
    loops = Loops(updates.shape)
    lead = loops.axes[: updates.rank - (out.rank - depth)]
    each: list[Expression | int] = list(lead)
    index = []
    for number, length in enumerate(out.shape[:depth]):
        at = [*each, number][: indices.rank] if indices.rank > len(lead) else each
        index.append(from_end(loops.read(indices, *at), length))
    first = loops.read_whole(met) if isinstance(met, Operand) else met
    value = loops.read(updates, *loops.axes) if value is None else value
    return loops.write_at(out, [*index, *loops.axes[len(lead) :]], value, combine, first)


@forms.form(specs.SCATTER_ND)
def scatter_nd(indices: Operand, updates: Operand, *, out: TensorType) -> Form:
    """Add updates up at their indices."""
    return _scatter(indices, updates, 0, "sum", out)


@forms.form(specs.TENSOR_SCATTER_UPDATE)
def tensor_scatter_update(
    tensor: Operand, indices: Operand, updates: Operand, *, out: TensorType
) -> Form:
    """Write updates; the last one of a place remains."""
    return _scatter(indices, updates, tensor, "last", out)


@forms.form(specs.TENSOR_SCATTER_REDUCE)
def tensor_scatter_reduce(
    tensor: Operand,
    indices: Operand,
    updates: Operand,
    *,
    reduction: str,
    include_self: bool,
    out: TensorType,
) -> list[Form]:
    """Combine updates with the elements that they meet, or with one another alone."""
    op = _REDUCTIONS[reduction]
    if include_self:
        return [_scatter(indices, updates, tensor, op, out)]
    # What is combined, where there is anything, and the choice between that and the tensor.
    marks = TensorType(dt.uint8, out.shape)
    combined, marked = Operand(out, 3), Operand(marks, 4)
    neutral = {"sum": 0, "prod": 1, "max": lowest(out.dtype), "min": highest(out.dtype)}
    choice = Loops(out.shape)
    mark, new, old = (choice.read(x, *choice.axes) for x in (marked, combined, tensor))
    return [
        _scatter(indices, updates, neutral[op], op, out),
        _scatter(indices, updates, 0, "max", marks, expressions.constant(1, dt.uint8)),
        choice.write(out, expressions.where(mark > 0, new, old)),
    ]


@forms.form(specs.SPARSE_TO_DENSE)
def sparse_to_dense(
    sparse_indices: Operand,
    sparse_values: Operand,
    default_value: Operand | None,
    *,
    output_shape: Shape,
    out: TensorType,
) -> list[Form]:
    """Write values at rows of indices, elsewhere the default value."""
    count = sparse_indices.shape[0] if sparse_indices.rank else 1
    loops, made = Loops((count,)), []
    (row,) = loops.axes
    first: Expression | Scalar = 0
    if default_value is not None:
        filled = Loops(out.shape)
        made.append(filled.write(out, filled.read_broadcast(default_value)))
        first = loops.read_whole(Operand(out, 3))
    index: list[Expression] = []
    for number, length in enumerate(output_shape):
        own: list[Expression | int] = [row, number]
        at = loops.read(sparse_indices, *own[: sparse_indices.rank])
        index.append(from_end(at, length))
    value = loops.read_in_order(sparse_values, None if sparse_values.size == count else ())
    return [*made, loops.write_at(out, index, value, "last", first)]
