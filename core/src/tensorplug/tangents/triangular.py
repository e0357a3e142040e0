"""Tangents of triangular systems: those of ``MatrixSolve``, within the triangle that is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import TangentTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.diagonals import tril, triu
from tensorplug.ops.linalg import triangular as ops
from tensorplug.ops.linalg.factorization import adjoint as adjoint_
from tensorplug.ops.matrix_products import matmul

if TYPE_CHECKING:
    from typing import Any

    from tensorplug.dispatch.tensor import Tensor

tangents: TangentTable = TangentTable()
tangents.linear(ops.MATRIX_TRIANGULAR_SOLVE, "rhs")


@tangents.wrt(ops.MATRIX_TRIANGULAR_SOLVE, "matrix")
def matrix_triangular_solve(
    matrix_dot: Tensor, matrix: Tensor, out: Tensor, attributes: dict[str, Any]
) -> Tensor:
    skipped = 1 if attributes["unit_diagonal"] else 0
    lower = attributes["lower"]
    read = tril(matrix_dot, k=-skipped) if lower else triu(matrix_dot, k=skipped)
    moved = adjoint_(read) if attributes["adjoint"] else read
    return -dispatch(ops.MATRIX_TRIANGULAR_SOLVE, matrix, matmul(moved, out), **attributes)
