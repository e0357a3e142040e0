"""Einstein sums from transposes, reshapes and products of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops import contraction as ops
from tensorplug.ops import extents, movement, reduction
from tensorplug.ops.contraction_order import contraction
from tensorplug.ops.matrix_products import matmul

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.ops.contraction_order import Arranged, Join, Reduced

decompositions: DecompositionTable = DecompositionTable()


@decompositions.of(ops.EINSUM)
def einsum(xs: list[Tensor], *, equation: str) -> Tensor:
    plan = contraction(equation, [x.shape for x in xs])
    made = [_reduce(x, how) for x, how in zip(xs, plan.reduced, strict=True)]
    for join in plan.joins:
        made.append(_join(made[join.left], made[join.right], join))
    last = made[-1] if plan.perm is None else movement.permute_dims(made[-1], plan.perm)
    return movement.identity(last)


def _reduce(x: Tensor, how: Reduced) -> Tensor:
    if how.shape is not None:
        x = movement.reshape(x, how.shape)
    for first, second in how.diagonals:
        x = _take_diagonal(x, first, second)
    # With the dtype of x: a sum of its own would widen small integers.
    return reduction.sum(x, axis=how.summed, dtype=x.dtype) if how.summed else x


def _take_diagonal(x: Tensor, first: int, second: int) -> Tensor:
    """Return the diagonal of axes ``first`` and ``second`` of x, along ``first``.

    The n**2 elements and n zeros after them form n rows of n + 1. Each row begins with an
    element of the diagonal.
    """
    rest = [axis for axis in range(x.ndim) if axis not in (first, second)]
    n = x.shape[first]
    kept = tuple(x.shape[axis] for axis in rest)
    flat = movement.reshape(movement.permute_dims(x, (*rest, first, second)), (*kept, n * n))
    padded = extents.pad(flat, [(0, 0)] * len(kept) + [(0, n)])
    rows = movement.reshape(padded, (*kept, n, n + 1))
    diagonal = movement.reshape(extents.slice(rows, [0] * rows.ndim, [*kept, n, 1]), (*kept, n))
    order = list(range(len(rest)))
    order.insert(first, len(rest))
    return movement.permute_dims(diagonal, order)


def _arrange(x: Tensor, how: Arranged) -> Tensor:
    if how.perm is not None:
        x = movement.permute_dims(x, how.perm)
    return x if how.shape is None else movement.reshape(x, how.shape)


def _join(left: Tensor, right: Tensor, join: Join) -> Tensor:
    a, b = _arrange(left, join.arranged_left), _arrange(right, join.arranged_right)
    if not join.matrices:
        return a * b
    product = matmul(
        a,
        b,
        transpose_a=join.arranged_left.swapped,
        transpose_b=join.arranged_right.swapped,
    )
    return product if join.shape is None else movement.reshape(product, join.shape)
