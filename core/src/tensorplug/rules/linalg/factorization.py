"""Gradients of factorizations, after Giles (2008), Seeger et al. (2017) and Townsend (2016).

Complex matrices follow Boeddeker et al. (2017) and Wan and Zhang (2019). The gradient of the
literature is the conjugate of our cotangents (see ``rules.complexes``), so its formulas are
conjugated here: for inputs and outputs, t(x) stands for the adjoint and conj(x) for x; dy and
adjoint(dy) stay as they are.

If a result is not unique, its gradient is that of the branch that was computed. The phases of
complex vectors are arbitrary, and a loss must not depend on them. Rules for Hermitian matrices
return the gradient with respect to a Hermitian change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch, dispatch_multiple
from tensorplug.errors import GradientNotFoundError
from tensorplug.mapping.derived import align, in_front
from tensorplug.ops import creation, diagonals
from tensorplug.ops.arrangement import flip, roll
from tensorplug.ops.creation import asarray, ones_like
from tensorplug.ops.diagonals import tril
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import equal, greater
from tensorplug.ops.elementwise.complexes import complex as complex_
from tensorplug.ops.elementwise.complexes import conj as conjugate
from tensorplug.ops.elementwise.complexes import imag, real
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.joining import concat
from tensorplug.ops.linalg import eigenvalues, systems, triangular
from tensorplug.ops.linalg import factorization as ops
from tensorplug.ops.linalg.triangular import MATRIX_TRIANGULAR_SOLVE
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.movement import expand_dims, reshape
from tensorplug.ops.movement import matrix_transpose as t
from tensorplug.ops.ranges import arange
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.contract.spec import KernelSpec, TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()


def conj(x: Tensor) -> Tensor:
    """Return the conjugate; real matrices stay as they are."""
    return conjugate(x) if x.dtype in dt.COMPLEX else x


def _number_rows_and_columns(n: int) -> tuple[Tensor, Tensor]:
    """Return the row and column numbers of a square matrix, ready to broadcast."""
    return reshape(arange(n), (n, 1)), reshape(arange(n), (1, n))


def _to_column(x: Tensor) -> Tensor:
    """Return vectors as columns; beside a matrix on the right they scale its rows."""
    return expand_dims(x, axis=-1)


def _to_row(x: Tensor) -> Tensor:
    """Return vectors as rows; beside a matrix on the left they scale its columns."""
    return expand_dims(x, axis=-2)


def _mark_diagonal(x: Tensor) -> Tensor:
    """Return where the elements of square matrices lie on the diagonal."""
    row, column = _number_rows_and_columns(x.shape[-1])
    return equal(row, column)


def _symmetrize(x: Tensor) -> Tensor:
    return (x + ops.adjoint(x)) / 2


def _invert_nonzero(x: Tensor) -> Tensor:
    """Return 1 / x, and 0 for 0, with finite gradients everywhere."""
    zero = equal(x, 0)
    return where(zero, 0.0, 1.0 / where(zero, 1.0, x))


def _invert_gaps(x: Tensor) -> Tensor:
    """Return 1 / (x_j - x_i) at row i and column j, and 0 where the two are equal."""
    return _invert_nonzero(_to_row(x) - _to_column(x))


# Systems of equations --------------------------------------------------------------------


@rules.vjp(systems.MATRIX_SOLVE)
def matrix_solve(
    wanted: frozenset[str], dy: Tensor, matrix: Tensor, out: Tensor, *, adjoint: bool
) -> dict[str, Tensor]:
    a = ops.adjoint(matrix) if adjoint else matrix
    db = systems.solve(t(a), dy)
    gradients = {"rhs": db} if "rhs" in wanted else {}
    if "matrix" in wanted:
        da = -matmul(db, t(out))
        gradients["matrix"] = ops.adjoint(da) if adjoint else da
    return gradients


@rules.vjp(systems.MATRIX_INVERSE, "input")
def matrix_inverse(dy: Tensor, out: Tensor, *, adjoint: bool) -> Tensor:
    da = -matmul(t(out), matmul(dy, t(out)))
    return ops.adjoint(da) if adjoint else da


rules.stop(ops.PSEUDO_INVERSE, "rtol", because="constant between jumps")


@rules.vjp(ops.PSEUDO_INVERSE, "input")
def pseudo_inverse(dy: Tensor, input: Tensor, out: Tensor) -> Tensor:
    # Golub and Pereyra (1973): dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P
    p, dp = out, dy
    inner = -matmul(t(p), matmul(dp, t(p)))
    beyond_columns = dp - matmul(dp, conj(matmul(input, p)))
    beyond_rows = dp - matmul(conj(matmul(p, input)), dp)
    left = matmul(ops.adjoint(beyond_columns), matmul(conj(p), t(p)))
    right = matmul(matmul(t(p), conj(p)), ops.adjoint(beyond_rows))
    return inner + left + right


@rules.vjp(systems.MATRIX_DETERMINANT, "input")
def matrix_determinant(dy: Tensor, input: Tensor, out: Tensor) -> Tensor:
    if 1 <= input.shape[-1] <= 3:  # polynomials: correct even if the determinant is 0
        return _to_column(_to_column(dy)) * compute_cofactors(input)
    return _to_column(_to_column(dy * out)) * t(systems.inv(input))


def compute_cofactors(x: Tensor) -> Tensor:
    """Return the signed minors of matrices of up to three rows."""
    if x.shape[-1] == 1:
        return ones_like(x)
    if x.shape[-1] == 2:
        signs = asarray([[1, -1], [-1, 1]], dtype=x.dtype)
        return flip(x, axis=(-2, -1)) * signs

    def shifted(rows: int, columns: int) -> Tensor:
        return roll(x, (-rows, -columns), axis=(-2, -1))

    return shifted(1, 1) * shifted(2, 2) - shifted(1, 2) * shifted(2, 1)


@rules.vjp(systems.LOG_MATRIX_DETERMINANT, "input")
def log_matrix_determinant(
    dy_sign: Tensor, dy_log_abs_determinant: Tensor, input: Tensor, sign: Tensor
) -> Tensor:
    factor = dy_log_abs_determinant
    if input.dtype in dt.COMPLEX:  # a phase changes continuously, a sign does not
        factor = complex_(factor, imag(sign * dy_sign))
    return _to_column(_to_column(factor)) * t(systems.inv(input))


# Factors ---------------------------------------------------------------------------------


@rules.vjp(ops.CHOLESKY, "input")
def cholesky(dy: Tensor, out: Tensor) -> Tensor:
    row, column = _number_rows_and_columns(out.shape[-1])
    inner = matmul(t(out), dy)
    halved = where(equal(row, column), inner / 2, where(greater(row, column), inner, 0.0))
    # the literature's L^-H halved L^-1, by two solves
    return _symmetrize(systems.solve(t(out), t(systems.solve(ops.adjoint(out), t(halved)))))


@rules.vjp(ops.QR, "input")
def qr(dy_q: Tensor, dy_r: Tensor, input: Tensor, q: Tensor, r: Tensor) -> Tensor:
    rows, columns = input.shape[-2:]
    if rows < q.shape[-1] or q.shape[-1] > columns:
        raise GradientNotFoundError(
            f"Qr has no gradient for complete matrices of {input.type}, because the additional "
            "columns of q are not unique; use mode='reduced'"
        )
    if columns <= rows:
        return _differentiate_independent_qr(dy_q, dy_r, q, r)
    # Only the leading columns x = q u determine q; the others are q v.
    lead = [0] * input.ndim
    begin = [*lead[:-1], rows]
    dy_v = slice_(dy_r, begin)
    dy_u = slice_(dy_r, lead, [*dy_r.shape[:-1], rows])
    u = slice_(r, lead, [*r.shape[:-1], rows])
    others = slice_(input, begin)
    dx = _differentiate_independent_qr(dy_q + matmul(conj(others), ops.adjoint(dy_v)), dy_u, q, u)
    return concat([dx, matmul(conj(q), dy_v)], axis=-1)


def _differentiate_independent_qr(dy_q: Tensor, dy_r: Tensor, q: Tensor, r: Tensor) -> Tensor:
    row, column = _number_rows_and_columns(r.shape[-1])
    m = matmul(conj(r), ops.adjoint(dy_r)) - matmul(ops.adjoint(dy_q), conj(q))
    # The lower triangle and its mirror; the diagonal of r is real.
    mirrored = where(greater(row, column), m, ops.adjoint(m))
    mirrored = where(equal(row, column), real(m), mirrored)
    return t(systems.solve(r, t(dy_q + matmul(conj(q), mirrored))))


@rules.vjp(ops.SVD, "input")
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
    rows, columns = input.shape[-2:]
    if not compute_uv:
        factors = ops.svd(input, full_matrices=False)
        return matmul(conj(factors.U) * _to_row(dy_s), conj(factors.Vh))
    if full_matrices and rows != columns:
        raise GradientNotFoundError(
            f"Svd has no gradient for full matrices of {input.type}, because the additional "
            "singular vectors are not unique; use full_matrices=False or svdvals"
        )
    gaps, inverse = _invert_gaps(s * s), _invert_nonzero(s)
    u, vh = conj(u), conj(vh)
    on_u, on_v = matmul(ops.adjoint(u), dy_u), matmul(dy_vh, ops.adjoint(vh))
    middle = gaps * (on_u - ops.adjoint(on_u)) * _to_row(s)
    middle = middle + _to_column(s) * gaps * (ops.adjoint(on_v) - on_v)
    diagonal = _to_column(dy_s)
    if input.dtype in dt.COMPLEX:  # u and v rotate against each other, each by half
        diagonal = complex_(diagonal, imag(on_u + on_v) / 2 * _to_row(inverse))
    result = matmul(u, matmul(where(_mark_diagonal(middle), middle + diagonal, middle), vh))
    if rows > columns:
        beyond = dy_u - matmul(u, on_u)
        result = result + matmul(beyond * _to_row(inverse), vh)
    if columns > rows:
        beyond = dy_vh - matmul(on_v, vh)
        result = result + matmul(u * _to_row(inverse), beyond)
    return result


@rules.vjp(eigenvalues.SELF_ADJOINT_EIG, "input")
def self_adjoint_eig(
    dy_e: Tensor, dy_v: Tensor, input: Tensor, e: Tensor, v: Tensor, *, compute_v: bool
) -> Tensor:
    if not compute_v:
        v = eigenvalues.eigh(input).eigenvectors
        return matmul(conj(v) * _to_row(dy_e), t(v))
    turned = _invert_gaps(e) * matmul(t(v), dy_v)
    middle = where(_mark_diagonal(turned), turned + _to_column(dy_e), turned)
    return _symmetrize(matmul(conj(v), matmul(middle, t(v))))


@rules.vjp(eigenvalues.EIG, "input")
def eig(
    dy_e: Tensor, dy_v: Tensor, input: Tensor, e: Tensor, v: Tensor, *, compute_v: bool
) -> Tensor:
    if compute_v:
        # Vectors keep length 1: remove the component that would lengthen them.
        on_v = matmul(t(v), dy_v)
        longer = real(where(_mark_diagonal(on_v), on_v, 0.0))
        middle = _invert_gaps(e) * (on_v - matmul(matmul(t(v), conj(v)), longer))
        middle = where(_mark_diagonal(middle), middle + _to_column(dy_e), middle)
        whole = systems.solve(t(v), matmul(middle, t(v)))
    else:
        v = eigenvalues.eig(input).eigenvectors
        # eig returns the eigenvalues in the same order.
        whole = systems.solve(t(v), _to_column(dy_e) * t(v))
    return astype(whole, input.dtype, copy=False)


# Tangents of systems of equations, determinants and the Cholesky factorization.
#
# Those of the other factorizations are their gradient rules, transposed.


@rules.jvp(systems.MATRIX_SOLVE, "matrix")
def matrix_solve_jvp(matrix_dot: Tensor, matrix: Tensor, out: Tensor, *, adjoint: bool) -> Tensor:
    moved = ops.adjoint(matrix_dot) if adjoint else matrix_dot
    return -dispatch(systems.MATRIX_SOLVE, matrix, matmul(moved, out), adjoint=adjoint)


@rules.jvp(systems.MATRIX_INVERSE, "input")
def matrix_inverse_jvp(input_dot: Tensor, out: Tensor, *, adjoint: bool) -> Tensor:
    moved = ops.adjoint(input_dot) if adjoint else input_dot
    return -matmul(out, matmul(moved, out))


@rules.jvp(systems.MATRIX_DETERMINANT, "input")
def matrix_determinant_jvp(input_dot: Tensor, input: Tensor, out: Tensor) -> Tensor:
    if 1 <= input.shape[-1] <= 3:  # polynomials: correct even if the determinant is 0
        return sum_(compute_cofactors(input) * input_dot, axis=(-2, -1))
    return out * _take_trace(input, input_dot)


@rules.jvp(systems.LOG_MATRIX_DETERMINANT, "input")
def log_matrix_determinant_jvp(
    input_dot: Tensor, input: Tensor, sign: Tensor
) -> list[Tensor | None]:
    change = _take_trace(input, input_dot)
    if input.dtype not in dt.COMPLEX:
        return [None, change]
    turn = complex_(0.0, imag(change))  # a phase changes continuously, a sign does not
    return [sign * turn, real(change)]


def _take_trace(x: Tensor, x_dot: Tensor) -> Tensor:
    """Return the trace of ``inv(x) @ x_dot``."""
    return sum_(t(systems.inv(x)) * x_dot, axis=(-2, -1))


@rules.jvp(ops.CHOLESKY, "input")
def cholesky_jvp(input_dot: Tensor, out: Tensor) -> Tensor:
    # L' = L P(L^-1 A' L^-H), P the lower triangle with half of the diagonal (Smith, 1995)
    change = (input_dot + ops.adjoint(input_dot)) / 2
    left = dispatch(MATRIX_TRIANGULAR_SOLVE, out, change, lower=True)
    both = ops.adjoint(dispatch(MATRIX_TRIANGULAR_SOLVE, out, ops.adjoint(left), lower=True))
    return matmul(out, (tril(both) + tril(both, k=-1)) / 2)


rules.broadcast(systems.MATRIX_SOLVE, triangular.MATRIX_TRIANGULAR_SOLVE)


def _decompose(spec: KernelSpec) -> Callable[..., Sequence[Tensor]]:
    """Return the rule of a factorization some of whose factors may be left out, as ``[0]``."""

    def rule(
        input: Tensor, *, attributes: dict[str, Any], size: int, out: tuple[TensorType, ...]
    ) -> Sequence[Tensor]:
        factors = dispatch_multiple(spec, input, **attributes)
        return [
            creation.zeros((size, 0), dtype=type_.dtype) if type_.shape == (0,) else factor
            for factor, type_ in zip(factors, out, strict=True)
        ]

    return rule


for _spec in (ops.SVD, eigenvalues.EIG, eigenvalues.SELF_ADJOINT_EIG):
    rules.batch(_spec)(_decompose(_spec))


@rules.batch(ops.PSEUDO_INVERSE)
def pseudo_inverse_batch(
    input: Tensor,
    rtol: Tensor | None,
    *,
    batched: frozenset[str],
    size: int,
    out: TensorType,
) -> Tensor:
    bound = align(rtol, out.rank - 2) if rtol is not None and "rtol" in batched else rtol
    return dispatch(ops.PSEUDO_INVERSE, in_front(input, "input" in batched, size), bound)


@rules.batch(diagonals.MATRIX_BAND_PART)
def band_part(
    input: Tensor, num_lower: Tensor, num_upper: Tensor, *, batched: frozenset[str]
) -> Any:
    if batched != {"input"}:
        return NotImplemented
    return dispatch(diagonals.MATRIX_BAND_PART, input, num_lower, num_upper)
