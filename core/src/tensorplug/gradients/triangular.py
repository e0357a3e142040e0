"""Gradients of triangular systems: those of ``MatrixSolve``, within the triangle that is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import GradientTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.diagonals import tril, triu
from tensorplug.ops.linalg import triangular as ops
from tensorplug.ops.linalg.factorization import adjoint as adjoint_
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.movement import matrix_transpose as t

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

gradients = GradientTable()


@gradients.wrt(ops.MATRIX_TRIANGULAR_SOLVE, "rhs")
def matrix_triangular_solve_wrt_rhs(
    dy: Tensor, matrix: Tensor, *, lower: bool, adjoint: bool, unit_diagonal: bool
) -> Tensor:
    return _solve_transposed(matrix, dy, lower=lower, adjoint=adjoint, unit=unit_diagonal)


@gradients.wrt(ops.MATRIX_TRIANGULAR_SOLVE, "matrix")
def matrix_triangular_solve_wrt_matrix(
    dy: Tensor, matrix: Tensor, out: Tensor, *, lower: bool, adjoint: bool, unit_diagonal: bool
) -> Tensor:
    db = _solve_transposed(matrix, dy, lower=lower, adjoint=adjoint, unit=unit_diagonal)
    da = -matmul(db, t(out))
    read = adjoint_(da) if adjoint else da
    skipped = 1 if unit_diagonal else 0
    return tril(read, k=-skipped) if lower else triu(read, k=skipped)


def _solve_transposed(
    matrix: Tensor, rhs: Tensor, *, lower: bool, adjoint: bool, unit: bool
) -> Tensor:
    """Solve with the transpose of the matrix, or of its adjoint."""
    turned = adjoint_(matrix) if adjoint else matrix
    return dispatch(
        ops.MATRIX_TRIANGULAR_SOLVE,
        t(turned),
        rhs,
        lower=lower if adjoint else not lower,
        unit_diagonal=unit,
    )
