"""Writing at indices: sums, and the last update of each place.

Updates whose index is out of range are not written.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.algorithms import highest, lowest, scatter_depth
from tensorplug.plugin import (
    Expression,
    KernelRefusedError,
    Scalar,
    Shape,
    TensorType,
    expressions,
    specs,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.loops import Loops, flat, from_end
from tensorplug_loops.forms.table import Form, FormTable, Operand

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    index = _targets(loops, indices, lead, out.shape[:depth])
    first = loops.read_whole(met) if isinstance(met, Operand) else met
    value = loops.read(updates, *loops.axes) if value is None else value
    return loops.write_at(out, [*index, *loops.axes[len(lead) :]], value, combine, first)


def _targets(
    loops: Loops, indices: Operand, lead: Sequence[Expression], shape: Shape
) -> list[Expression]:
    """Return the index, along axes of these lengths, that updates numbered ``lead`` go to."""
    index = []
    for number, length in enumerate(shape):
        each = [*lead, number][: indices.rank] if indices.rank > len(lead) else lead
        index.append(from_end(loops.read(indices, *each), length))
    return index


def _replaced(
    old: Operand,
    indices: Operand,
    updates: Operand,
    lead: Shape,
    depth: int,
    inputs: int,
    out: TensorType,
) -> list[Form]:
    """Find the last update of each row, then take each row from there or from the old ones.

    ``lead``: the shape of the updates, each a row, of axes from ``depth`` on. ``inputs``: of the
    kernel.
    """
    count, named = prod(lead), out.shape[:depth]
    if count > dt.int32.max:
        raise KernelRefusedError(f"{count} updates are too many to be numbered by 32 bits")
    rows = Loops(out.shape)
    if not count:
        return [rows.write(out, rows.read_broadcast(old))]
    loops = Loops(lead)
    number = expressions.cast(flat(loops.axes, lead), dt.int32)
    numbers = Operand(TensorType(dt.int32, named), inputs)
    index = _targets(loops, indices, loops.axes, named)
    found = loops.write_at(numbers.type, index, number, "max", -1)
    last = rows.read(numbers, *rows.axes[:depth])
    before = rows.read_broadcast(old)
    if updates.size == 1:
        new = rows.read(updates.reshaped((1,)), 0)
    else:
        inner = rows.axes[depth:]
        each = updates.reshaped((count, *out.shape[depth:]))
        new = rows.read(each, last, *inner, outside=0)
    return [found, rows.write(out, expressions.where(last >= 0, new, before))]


@forms.form(specs.SCATTER_ND)
def scatter_nd(indices: Operand, updates: Operand, *, out: TensorType) -> Form:
    """Add updates up at their indices."""
    return _scatter(indices, updates, 0, "sum", out)


@forms.form(specs.TENSOR_SCATTER_UPDATE)
def tensor_scatter_update(
    tensor: Operand, indices: Operand, updates: Operand, *, out: TensorType
) -> list[Form]:
    """Write updates; the last one of a place remains."""
    depth = scatter_depth(indices.shape, updates.shape, out.shape)
    lead = updates.shape[: updates.rank - (out.rank - depth)]
    return _replaced(tensor, indices, updates, lead, depth, 3, out)


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
    marks = TensorType(dt.int32, out.shape)
    combined, marked = Operand(out, 3), Operand(marks, 4)
    neutral = {"sum": 0, "prod": 1, "max": lowest(out.dtype), "min": highest(out.dtype)}
    choice = Loops(out.shape)
    mark, new, old = (choice.read(x, *choice.axes) for x in (marked, combined, tensor))
    return [
        _scatter(indices, updates, neutral[op], op, out),
        _scatter(indices, updates, 0, "max", marks, expressions.constant(1, dt.int32)),
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
    lead = sparse_indices.shape[:1]
    inputs = 2 if default_value is None else 3
    default = default_value or Operand.of(np.zeros((), out.dtype.numpy))
    return _replaced(default, sparse_indices, sparse_values, lead, len(output_shape), inputs, out)
