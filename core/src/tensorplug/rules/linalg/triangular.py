"""Gradients of triangular systems: those of ``MatrixSolve``, within the triangle that is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.diagonals import tril, triu
from tensorplug.ops.linalg import triangular as ops
from tensorplug.ops.linalg.factorization import adjoint as adjoint_
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.movement import matrix_transpose as t

if TYPE_CHECKING:
    from typing import Any

    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()


@rules.vjp(ops.MATRIX_TRIANGULAR_SOLVE)
def matrix_triangular_solve(
    wanted: frozenset[str],
    dy: Tensor,
    matrix: Tensor,
    out: Tensor,
    *,
    lower: bool,
    adjoint: bool,
    unit_diagonal: bool,
) -> dict[str, Tensor]:
    a = adjoint_(matrix) if adjoint else matrix
    db = dispatch(
        ops.MATRIX_TRIANGULAR_SOLVE,
        t(a),
        dy,
        lower=lower if adjoint else not lower,
        unit_diagonal=unit_diagonal,
    )
    gradients = {"rhs": db} if "rhs" in wanted else {}
    if "matrix" in wanted:
        da = -matmul(db, t(out))
        read = adjoint_(da) if adjoint else da
        skipped = 1 if unit_diagonal else 0
        gradients["matrix"] = tril(read, k=-skipped) if lower else triu(read, k=skipped)
    return gradients


@rules.jvp(ops.MATRIX_TRIANGULAR_SOLVE, "matrix")
def matrix_triangular_solve_jvp(
    matrix_dot: Tensor, matrix: Tensor, out: Tensor, attributes: dict[str, Any]
) -> Tensor:
    skipped = 1 if attributes["unit_diagonal"] else 0
    lower = attributes["lower"]
    read = tril(matrix_dot, k=-skipped) if lower else triu(matrix_dot, k=skipped)
    moved = adjoint_(read) if attributes["adjoint"] else read
    return -dispatch(ops.MATRIX_TRIANGULAR_SOLVE, matrix, matmul(moved, out), **attributes)
