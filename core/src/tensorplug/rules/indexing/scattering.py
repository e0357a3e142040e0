"""Gradients of updates combined by place."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops import segmented_scans
from tensorplug.ops.creation import full, ones, zeros_like
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import (
    equal,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
)
from tensorplug.ops.indexing import scattering as ops
from tensorplug.ops.indexing.indexing import flatten_indices, gather_nd, scatter_depth
from tensorplug.ops.indexing.writing import scatter_nd
from tensorplug.ops.movement import reshape

if TYPE_CHECKING:
    from typing import Any

    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.stop(ops.TENSOR_SCATTER_REDUCE, "indices", because="whole numbers")


@rules.vjp(ops.TENSOR_SCATTER_REDUCE, "tensor", "updates")
def scatter_reduce(
    wanted: frozenset[str],
    dy: Tensor,
    tensor: Tensor,
    indices: Tensor,
    updates: Tensor,
    out: Tensor,
    reduction: str,
    include_self: bool,  # noqa: FBT001
) -> dict[str, Tensor]:
    rows = _list_rows(indices, updates.type, dy.shape)
    slopes = {}
    if "tensor" in wanted and not include_self:
        kept = logical_not(_find_touched(rows, dy.shape))
        slopes["tensor"] = where(kept, dy, full((), 0, dtype=dy.dtype))
    elif "tensor" in wanted and reduction == "add":
        slopes["tensor"] = dy
    elif "tensor" in wanted and reduction == "multiply":
        once = ones(dy.shape, dtype=updates.dtype)
        slopes["tensor"] = dy * ops.tensor_scatter_reduce(once, indices, updates, "multiply")
    elif "tensor" in wanted:
        attains, _, count = _find_extremes(tensor, rows, updates, out, include_self=True)
        slopes["tensor"] = dy * attains / count
    if "updates" not in wanted:
        return slopes
    if not updates.size:
        return {**slopes, "updates": updates * 0}
    if reduction == "add":
        result = gather_nd(dy, rows)
    elif reduction == "multiply":
        incoming = gather_nd(dy * tensor if include_self else dy, rows)
        targets = flatten_indices(rows, dy.shape[: rows.shape[1]])
        others = segmented_scans.multiply_others(reshape(updates, (rows.shape[0], -1)), targets)
        result = reshape(incoming, others.shape) * others
    else:
        _, attains, count = _find_extremes(tensor, rows, updates, out, include_self=include_self)
        result = gather_nd(dy / count, rows) * attains
    return {**slopes, "updates": reshape(result, updates.shape)}


def _list_rows(indices: Tensor, updates: TensorType, shape: Shape) -> Tensor:
    """Return the indices as ``[n, depth]``."""
    depth = scatter_depth(indices.shape, updates.shape, shape)
    return reshape(indices, (prod(updates.shape[: updates.rank - len(shape) + depth]), depth))


def _find_touched(rows: Tensor, shape: Shape) -> Tensor:
    """Return which places have an update; it broadcasts to ``shape``."""
    count, depth = rows.shape
    number = scatter_nd(rows, ones((count,), dtype=dt.int32), shape[:depth])
    return reshape(number > 0, (*shape[:depth], *(1,) * (len(shape) - depth)))


def _find_extremes(
    tensor: Tensor, rows: Tensor, updates: Tensor, out: Tensor, *, include_self: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return 1 for elements and updates ``[n, *rest]`` that equal the extremum, and their number.

    The number is at least 1: where the element takes no part and has no update, it remains.
    """
    flat = reshape(updates, (rows.shape[0], *out.shape[rows.shape[1] :]))
    of_tensor = _equals(tensor, out)
    if not include_self:
        of_tensor = logical_and(of_tensor, logical_not(_find_touched(rows, out.shape)))
    own = astype(of_tensor, out.dtype)
    of_updates = astype(_equals(flat, gather_nd(out, rows)), out.dtype)
    return own, of_updates, own + scatter_nd(rows, of_updates, out.shape)


def _equals(x: Tensor, extreme: Tensor) -> Tensor:
    """Return whether x is the extremum; where there is a NaN, that is the extremum."""
    return logical_or(equal(x, extreme), not_equal(x, x))


@rules.jvp(ops.TENSOR_SCATTER_REDUCE, "tensor", "updates")
def scatter_reduce_jvp(
    tensor_dot: Tensor | None,
    updates_dot: Tensor | None,
    tensor: Tensor,
    indices: Tensor,
    updates: Tensor,
    reduction: str,
    attributes: dict[str, Any],
) -> Any:
    if reduction != "add":
        return NotImplemented
    return dispatch(
        ops.TENSOR_SCATTER_REDUCE,
        zeros_like(tensor) if tensor_dot is None else tensor_dot,
        indices,
        zeros_like(updates) if updates_dot is None else updates_dot,
        **attributes,
    )
