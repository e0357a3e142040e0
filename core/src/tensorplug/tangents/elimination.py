"""The tangent of Gaussian elimination: see ``gradients.elimination``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import TangentTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.gradients.elimination import take_parts
from tensorplug.ops.diagonals import tril, triu
from tensorplug.ops.indexing.indexing import gather
from tensorplug.ops.linalg import elimination as ops
from tensorplug.ops.linalg.triangular import MATRIX_TRIANGULAR_SOLVE
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.movement import concat
from tensorplug.ops.movement import matrix_transpose as t

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

tangents: TangentTable = TangentTable()


@tangents.wrt(ops.LU, "input")
def lu(input_dot: Tensor, lu: Tensor, p: Tensor) -> list[Tensor | None]:
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
