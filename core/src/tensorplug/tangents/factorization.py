"""Tangents of systems of equations, determinants and the Cholesky factorization.

Those of the other factorizations are their gradient rules, transposed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import TangentTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.gradients.factorization import compute_cofactors
from tensorplug.ops.complexes import complex as complex_
from tensorplug.ops.complexes import imag, real
from tensorplug.ops.diagonals import tril
from tensorplug.ops.linalg import factorization as ops
from tensorplug.ops.linalg.triangular import MATRIX_TRIANGULAR_SOLVE
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.movement import matrix_transpose as t
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

tangents: TangentTable = TangentTable()
tangents.linear(ops.MATRIX_SOLVE, "rhs")


@tangents.wrt(ops.MATRIX_SOLVE, "matrix")
def matrix_solve(matrix_dot: Tensor, matrix: Tensor, out: Tensor, *, adjoint: bool) -> Tensor:
    moved = ops.adjoint(matrix_dot) if adjoint else matrix_dot
    return -dispatch(ops.MATRIX_SOLVE, matrix, matmul(moved, out), adjoint=adjoint)


@tangents.wrt(ops.MATRIX_INVERSE, "input")
def matrix_inverse(input_dot: Tensor, out: Tensor, *, adjoint: bool) -> Tensor:
    moved = ops.adjoint(input_dot) if adjoint else input_dot
    return -matmul(out, matmul(moved, out))


@tangents.wrt(ops.MATRIX_DETERMINANT, "input")
def matrix_determinant(input_dot: Tensor, input: Tensor, out: Tensor) -> Tensor:
    if 1 <= input.shape[-1] <= 3:  # polynomials: correct even if the determinant is 0
        return sum_(compute_cofactors(input) * input_dot, axis=(-2, -1))
    return out * _take_trace(input, input_dot)


@tangents.wrt(ops.LOG_MATRIX_DETERMINANT, "input")
def log_matrix_determinant(input_dot: Tensor, input: Tensor, sign: Tensor) -> list[Tensor | None]:
    change = _take_trace(input, input_dot)
    if input.dtype not in dt.COMPLEX:
        return [None, change]
    turn = complex_(0.0, imag(change))  # a phase changes continuously, a sign does not
    return [sign * turn, real(change)]


def _take_trace(x: Tensor, x_dot: Tensor) -> Tensor:
    """Return the trace of ``inv(x) @ x_dot``."""
    return sum_(t(ops.inv(x)) * x_dot, axis=(-2, -1))


@tangents.wrt(ops.CHOLESKY, "input")
def cholesky(input_dot: Tensor, out: Tensor) -> Tensor:
    # L' = L P(L^-1 A' L^-H), P the lower triangle with half of the diagonal (Smith, 1995)
    change = (input_dot + ops.adjoint(input_dot)) / 2
    left = dispatch(MATRIX_TRIANGULAR_SOLVE, out, change, lower=True)
    both = ops.adjoint(dispatch(MATRIX_TRIANGULAR_SOLVE, out, ops.adjoint(left), lower=True))
    return matmul(out, (tril(both) + tril(both, k=-1)) / 2)
