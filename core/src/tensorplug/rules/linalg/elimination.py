"""The gradient of Gaussian elimination, with the conventions of ``rules.factorization``.

With the rows in their new order, ``b = l u``. A change f of ``l^-1 b u^-1`` changes l by
``l tril(f, -1)`` and u by ``triu(f) u``; the rule is the transpose of that. Rows below a square l,
and columns on the right of a square u, follow from ``l u``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.diagonals import tril, triu
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.indexing.indexing import gather
from tensorplug.ops.joining import concat
from tensorplug.ops.linalg import elimination as ops
from tensorplug.ops.linalg.triangular import MATRIX_TRIANGULAR_SOLVE
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.movement import matrix_transpose as t
from tensorplug.ops.sorting import argsort

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()


def take_parts(packed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the leading square of matrices, the rows below it, and the columns on its right."""
    *batch, rows, columns = packed.shape
    few, begin = min(rows, columns), [0] * len(batch)
    return (
        slice_(packed, [*begin, 0, 0], [*batch, few, few]),
        slice_(packed, [*begin, few, 0], [*batch, rows - few, few]),
        slice_(packed, [*begin, 0, few], [*batch, few, columns - few]),
    )


@rules.vjp(ops.LU, "input")
def lu(dy_lu: Tensor, lu: Tensor, p: Tensor) -> Tensor:
    square, below, beside = take_parts(lu)
    dy, dy_below, dy_beside = take_parts(dy_lu)
    lower = tril(square, k=-1)

    def divide_by_lower(x: Tensor) -> Tensor:
        return dispatch(MATRIX_TRIANGULAR_SOLVE, t(square), x, lower=False, unit_diagonal=True)

    def divide_by_upper(x: Tensor) -> Tensor:
        return t(dispatch(MATRIX_TRIANGULAR_SOLVE, square, t(x), lower=False))

    of_lower = tril(dy, k=-1)
    on_lower = of_lower + matmul(t(lower), of_lower) - matmul(dy_beside, t(beside))
    on_upper = matmul(triu(dy), t(triu(square))) - matmul(t(below), dy_below)
    middle = tril(on_lower, k=-1) + triu(on_upper)
    moved = divide_by_lower(divide_by_upper(middle))
    if below.shape[-2]:
        moved = concat([moved, divide_by_upper(dy_below)], axis=-2)
    if beside.shape[-1]:
        moved = concat([moved, divide_by_lower(dy_beside)], axis=-1)
    axis = moved.ndim - 2
    return gather(moved, argsort(p, axis=-1), axis=axis, batch_dims=axis)


@rules.jvp(ops.LU, "input")
def lu_jvp(input_dot: Tensor, lu: Tensor, p: Tensor) -> list[Tensor | None]:
    axis = input_dot.ndim - 2
    change, change_below, change_beside = take_parts(
        gather(input_dot, p, axis=axis, batch_dims=axis)
    )
    square, below, beside = take_parts(lu)

    def divide_by_lower(x: Tensor) -> Tensor:
        return dispatch(MATRIX_TRIANGULAR_SOLVE, square, x, lower=True, unit_diagonal=True)

    def divide_by_upper(x: Tensor) -> Tensor:
        return t(dispatch(MATRIX_TRIANGULAR_SOLVE, t(square), t(x), lower=True))

    middle = divide_by_lower(divide_by_upper(change))
    strict = tril(middle, k=-1)
    lower_dot = strict + matmul(tril(square, k=-1), strict)
    upper_dot = matmul(triu(middle), triu(square))
    packed = lower_dot + upper_dot
    if below.shape[-2]:
        packed = concat(
            [packed, divide_by_upper(change_below - matmul(below, upper_dot))], axis=-2
        )
    if beside.shape[-1]:
        packed = concat(
            [packed, divide_by_lower(change_beside - matmul(lower_dot, beside))], axis=-1
        )
    return [packed, None]
