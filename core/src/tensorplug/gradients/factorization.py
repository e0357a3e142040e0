"""Gradients of factorizations, after Giles (2008), Seeger et al. (2017) and Townsend (2016).

Where a result is not unique, its gradient is that of the branch which came out. Rules for
Hermitian matrices give the gradient with respect to a symmetric change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug import dtypes as dt
from tensorplug.errors import GradientNotFoundError
from tensorplug.ops import factorization as ops
from tensorplug.ops.comparison import equal, greater, greater_equal
from tensorplug.ops.complexes import complex as complex_
from tensorplug.ops.complexes import imag, real
from tensorplug.ops.creation import arange
from tensorplug.ops.elementwise import astype, where
from tensorplug.ops.linalg import matmul
from tensorplug.ops.movement import concat, expand_dims, reshape
from tensorplug.ops.movement import matrix_transpose as t
from tensorplug.ops.movement import slice as slice_
from tensorplug.tables import GradientTable

if TYPE_CHECKING:
    from tensorplug.spec import TensorType
    from tensorplug.tensor import Tensor

gradients = GradientTable()


def _only_real(what: str, type_: TensorType) -> None:
    if type_.dtype in dt.COMPLEX:
        raise GradientNotFoundError(f"{what} has no gradient for complex matrices, got {type_}")


def _indices(n: int) -> tuple[Tensor, Tensor]:
    """Return the row and the column of each element of a square matrix, to be broadcast."""
    return reshape(arange(n), (n, 1)), reshape(arange(n), (1, n))


def _column(x: Tensor) -> Tensor:
    """Return vectors as columns; beside a matrix on the right they scale its rows."""
    return expand_dims(x, axis=-1)


def _row(x: Tensor) -> Tensor:
    """Return vectors as rows; beside a matrix on the left they scale its columns."""
    return expand_dims(x, axis=-2)


def _reciprocal(x: Tensor) -> Tensor:
    """Return 1 / x, and 0 for 0, with finite gradients everywhere."""
    zero = equal(x, 0)
    return where(zero, 0.0, 1.0 / where(zero, 1.0, x))


def _gaps(x: Tensor) -> Tensor:
    """Return 1 / (x_j - x_i) at row i and column j, and 0 where the two are equal."""
    return _reciprocal(_row(x) - _column(x))


# Systems of equations --------------------------------------------------------------------


@gradients.wrt(ops.MATRIX_SOLVE, "rhs")
def matrix_solve_wrt_rhs(dy: Tensor, matrix: Tensor, *, adjoint: bool) -> Tensor:
    a = ops.adjoint(matrix) if adjoint else matrix
    return ops.solve(t(a), dy)


@gradients.wrt(ops.MATRIX_SOLVE, "matrix")
def matrix_solve_wrt_matrix(dy: Tensor, matrix: Tensor, out: Tensor, *, adjoint: bool) -> Tensor:
    a = ops.adjoint(matrix) if adjoint else matrix
    da = -matmul(ops.solve(t(a), dy), t(out))
    return ops.adjoint(da) if adjoint else da


@gradients.wrt(ops.MATRIX_INVERSE, "input")
def matrix_inverse(dy: Tensor, out: Tensor, *, adjoint: bool) -> Tensor:
    da = -matmul(t(out), matmul(dy, t(out)))
    return ops.adjoint(da) if adjoint else da


gradients.stop(ops.PSEUDO_INVERSE, "rtol")


@gradients.wrt(ops.PSEUDO_INVERSE, "input")
def pseudo_inverse(dy: Tensor, input: Tensor, out: Tensor) -> Tensor:
    # Golub and Pereyra (1973): dP = -P dA P + P P^T dA^T (1 - A P) + (1 - P A) dA^T P^T P
    _only_real("PseudoInverse", input.type)
    p, dp = out, dy
    inner = -matmul(t(p), matmul(dp, t(p)))
    beyond_columns = dp - matmul(dp, matmul(input, p))
    beyond_rows = dp - matmul(matmul(p, input), dp)
    left = matmul(t(beyond_columns), matmul(p, t(p)))
    right = matmul(matmul(t(p), p), t(beyond_rows))
    return inner + left + right


@gradients.wrt(ops.MATRIX_DETERMINANT, "input")
def matrix_determinant(dy: Tensor, input: Tensor, out: Tensor) -> Tensor:
    return _column(_column(dy * out)) * t(ops.inv(input))


@gradients.wrt(ops.LOG_MATRIX_DETERMINANT, "input")
def log_matrix_determinant(
    dy_sign: Tensor, dy_log_abs_determinant: Tensor, input: Tensor, sign: Tensor
) -> Tensor:
    factor = dy_log_abs_determinant
    if input.dtype in dt.COMPLEX:  # a phase turns, a sign does not change
        factor = complex_(factor, imag(sign * dy_sign))
    return _column(_column(factor)) * t(ops.inv(input))


# Factors ---------------------------------------------------------------------------------


@gradients.wrt(ops.CHOLESKY, "input")
def cholesky(dy: Tensor, out: Tensor) -> Tensor:
    _only_real("Cholesky", out.type)
    row, column = _indices(out.shape[-1])
    inner = matmul(t(out), dy)
    halved = where(equal(row, column), inner / 2, where(greater(row, column), inner, 0.0))
    # L^-T halved L^-1, by solving twice
    whole = ops.solve(t(out), t(ops.solve(t(out), halved)))
    return (whole + t(whole)) / 2


@gradients.wrt(ops.QR, "input")
def qr(dy_q: Tensor, dy_r: Tensor, input: Tensor, q: Tensor, r: Tensor) -> Tensor:
    _only_real("Qr", input.type)
    rows, columns = input.shape[-2:]
    if rows < q.shape[-1] or q.shape[-1] > columns:
        raise GradientNotFoundError(
            f"Qr has no gradient for complete matrices of {input.type}: the further columns of q "
            "are not determined; use mode='reduced'"
        )
    if columns <= rows:
        return _qr_of_independent(dy_q, dy_r, q, r)
    # Only the leading columns x = q u determine q; the others are q v.
    lead = [0] * input.ndim
    begin = [*lead[:-1], rows]
    dy_v = slice_(dy_r, begin)
    dy_u = slice_(dy_r, lead, [*dy_r.shape[:-1], rows])
    u = slice_(r, lead, [*r.shape[:-1], rows])
    others = slice_(input, begin)
    dx = _qr_of_independent(dy_q + matmul(others, t(dy_v)), dy_u, q, u)
    return concat([dx, matmul(q, dy_v)], axis=-1)


def _qr_of_independent(dy_q: Tensor, dy_r: Tensor, q: Tensor, r: Tensor) -> Tensor:
    row, column = _indices(r.shape[-1])
    m = matmul(r, t(dy_r)) - matmul(t(dy_q), q)
    mirrored = where(greater_equal(row, column), m, t(m))  # the lower triangle and its mirror
    return t(ops.solve(r, t(dy_q + matmul(q, mirrored))))


@gradients.wrt(ops.SVD, "input")
def svd(
    dy_s: Tensor,
    dy_u: Tensor,
    dy_vh: Tensor,
    input: Tensor,
    s: Tensor,
    u: Tensor,
    vh: Tensor,
    *,
    compute_uv: bool,
    full_matrices: bool,
) -> Tensor:
    _only_real("Svd", input.type)
    rows, columns = input.shape[-2:]
    if not compute_uv:
        factors = ops.svd(input, full_matrices=False)
        return matmul(factors.U * _row(dy_s), factors.Vh)
    if full_matrices and rows != columns:
        raise GradientNotFoundError(
            f"Svd has no gradient for full matrices of {input.type}: the further singular vectors "
            "are not determined; use full_matrices=False, or svdvals"
        )
    gaps = _gaps(s * s)
    on_u, on_v = matmul(t(u), dy_u), matmul(dy_vh, t(vh))  # (V^T dV)^T is the latter
    middle = gaps * (on_u - t(on_u)) * _row(s) + _column(s) * gaps * (t(on_v) - on_v)
    row, column = _indices(s.shape[-1])
    middle = where(equal(row, column), middle + _column(dy_s), middle)
    result = matmul(u, matmul(middle, vh))
    inverse = _reciprocal(s)
    if rows > columns:
        beyond = dy_u - matmul(u, on_u)
        result = result + matmul(beyond * _row(inverse), vh)
    if columns > rows:
        beyond = dy_vh - matmul(on_v, vh)
        result = result + matmul(u * _row(inverse), beyond)
    return result


@gradients.wrt(ops.SELF_ADJOINT_EIG, "input")
def self_adjoint_eig(
    dy_e: Tensor, dy_v: Tensor, input: Tensor, e: Tensor, v: Tensor, *, compute_v: bool
) -> Tensor:
    _only_real("SelfAdjointEigV2", input.type)
    if not compute_v:
        v = ops.eigh(input).eigenvectors
        return matmul(v * _row(dy_e), t(v))
    turned = _gaps(e) * matmul(t(v), dy_v)
    row, column = _indices(e.shape[-1])
    middle = where(equal(row, column), turned + _column(dy_e), turned)
    whole = matmul(v, matmul(middle, t(v)))
    return (whole + t(whole)) / 2


@gradients.wrt(ops.EIG, "input")
def eig(dy_e: Tensor, input: Tensor, *, compute_v: bool) -> Tensor:
    if compute_v:
        raise GradientNotFoundError(
            f"Eig has no gradient with eigenvectors, for {input.type}; use eigvals, or eigh for "
            "symmetric matrices"
        )
    v = ops.eig(input).eigenvectors
    # The eigenvalues come in the order in which eig gives them too.
    whole = ops.solve(t(v), _column(dy_e) * t(v))
    return whole if input.dtype in dt.COMPLEX else astype(real(whole), input.dtype)
