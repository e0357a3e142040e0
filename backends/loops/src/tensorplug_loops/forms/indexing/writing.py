"""Writing at indices: sums, and the last update of each place.

Updates whose index is out of range are not written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.algorithms import scatter_depth
from tensorplug.plugin import KernelRefusedError, Shape, TensorType, specs
from tensorplug_loops.forms.loops import Loops, from_end
from tensorplug_loops.forms.table import FormTable

if TYPE_CHECKING:
    from tensorplug.plugin import Expression
    from tensorplug_loops.forms.table import Form, Operand

forms = FormTable()

_REDUCTIONS: Final = {"add": "sum", "multiply": "prod", "max": "max", "min": "min"}


def _scatter(
    indices: Operand,
    updates: Operand,
    tensor: Operand | None,
    combine: Any,
    out: TensorType,
) -> Form:
    """Loop over the updates; ``tensor`` is what they meet, zeros if there is none."""
    depth = scatter_depth(indices.shape, updates.shape, out.shape)
    loops = Loops(updates.shape)
    lead = loops.axes[: updates.rank - (out.rank - depth)]
    each: list[Expression | int] = list(lead)
    index = []
    for number, length in enumerate(out.shape[:depth]):
        at = [*each, number][: indices.rank] if indices.rank > len(lead) else each
        index.append(from_end(loops.read(indices, *at), length))
    value = loops.read(updates, *loops.axes)
    first: Any = 0 if tensor is None else loops.read_whole(tensor)
    return loops.write_at(out, [*index, *loops.axes[len(lead) :]], value, combine, first)


@forms.form(specs.SCATTER_ND)
def scatter_nd(indices: Operand, updates: Operand, *, out: TensorType) -> Form:
    """Add updates up at their indices."""
    return _scatter(indices, updates, None, "sum", out)


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
) -> Form:
    """Combine updates with the elements that they meet."""
    if not include_self:
        raise KernelRefusedError("it combines updates with the elements of the tensor")
    return _scatter(indices, updates, tensor, _REDUCTIONS[reduction], out)


@forms.form(specs.SPARSE_TO_DENSE)
def sparse_to_dense(
    sparse_indices: Operand,
    sparse_values: Operand,
    default_value: Operand | None,
    *,
    output_shape: Shape,
    out: TensorType,
) -> Form:
    """Write values at rows of indices, elsewhere the default value."""
    count = sparse_indices.shape[0] if sparse_indices.rank else 1
    if default_value is not None and default_value.size:
        raise KernelRefusedError("the default value lies on the device")
    loops = Loops((count,))
    (row,) = loops.axes
    index: list[Expression] = []
    for number, length in enumerate(output_shape):
        own: list[Expression | int] = [row, number]
        index.append(from_end(loops.read(sparse_indices, *own[: sparse_indices.rank]), length))
    value = loops.read_in_order(sparse_values, None if sparse_values.size == count else ())
    return loops.write_at(out, index, value, "last", 0)
