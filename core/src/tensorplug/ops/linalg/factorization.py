"""Factorizations of matrices, and functions based on them. Leading axes are a batch.

Where several results are valid (signs or phases of vectors), the device decides. Kernels
have TensorFlow's names; the source of the functions is the array API standard 2025.12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import choice
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, dispatch, dispatch_multiple
from tensorplug.errors import ShapeError
from tensorplug.ops.complexes import conj
from tensorplug.ops.movement import expand_dims, matrix_transpose, squeeze

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.dispatch.tensor import Tensor

__all__ = [
    "cholesky",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
]


def _check_matrices(x: TensorType) -> tuple[shapes.Shape, int, int]:
    if x.rank < 2:
        raise ShapeError(f"the operand must have at least rank 2, got {x}")
    return x.shape[:-2], x.shape[-2], x.shape[-1]


def _check_square(x: TensorType) -> tuple[shapes.Shape, int]:
    batch, rows, columns = _check_matrices(x)
    if rows != columns:
        raise ShapeError(f"the matrices must be square, got {rows} rows and {columns} columns")
    return batch, rows


def _infer_same_square(input: TensorType) -> TensorType:
    _check_square(input)
    return input


def _infer_matrix_determinant(input: TensorType) -> TensorType:
    return TensorType(input.dtype, _check_square(input)[0])


def _infer_log_matrix_determinant(input: TensorType) -> tuple[TensorType, TensorType]:
    batch, _ = _check_square(input)
    return TensorType(input.dtype, batch), TensorType(dt.real_part(input.dtype), batch)


def _infer_matrix_solve(matrix: TensorType, rhs: TensorType) -> TensorType:
    batch, size = _check_square(matrix)
    others, rows, columns = _check_matrices(rhs)
    if rows != size:
        raise ShapeError(f"the matrices have {size} rows, but the right-hand sides have {rows}")
    return TensorType(rhs.dtype, (*shapes.broadcast(batch, others), size, columns))


def _infer_qr(input: TensorType, *, full_matrices: bool) -> tuple[TensorType, TensorType]:
    batch, rows, columns = _check_matrices(input)
    inner = rows if full_matrices else min(rows, columns)
    return (
        TensorType(input.dtype, (*batch, rows, inner)),
        TensorType(input.dtype, (*batch, inner, columns)),
    )


def _infer_svd(
    input: TensorType, *, compute_uv: bool, full_matrices: bool
) -> tuple[TensorType, TensorType, TensorType]:
    batch, rows, columns = _check_matrices(input)
    few = min(rows, columns)
    left: shapes.Shape = (*batch, rows, rows if full_matrices else few)
    right: shapes.Shape = (*batch, columns if full_matrices else few, columns)
    if not compute_uv:
        left = right = (0,)
    return (
        TensorType(dt.real_part(input.dtype), (*batch, few)),
        TensorType(input.dtype, left),
        TensorType(input.dtype, right),
    )


def _eigen(
    input: TensorType, values: DType, vectors: DType, *, compute_v: bool
) -> tuple[TensorType, TensorType]:
    batch, size = _check_square(input)
    return (
        TensorType(values, (*batch, size)),
        TensorType(vectors, (*batch, size, size) if compute_v else (0,)),
    )


def _infer_self_adjoint_eig(
    input: TensorType, *, compute_v: bool
) -> tuple[TensorType, TensorType]:
    return _eigen(input, dt.real_part(input.dtype), input.dtype, compute_v=compute_v)


def _infer_eig(input: TensorType, *, compute_v: bool) -> tuple[TensorType, TensorType]:
    wide = input.dtype in (dt.float64, dt.complex128)
    dtype = dt.complex128 if wide else dt.complex64
    return _eigen(input, dtype, dtype, compute_v=compute_v)


_NUMBERS: dict[str, Any] = {"accepts": dt.NUMERIC, "promote": ("input",), "inexact": True}
_NO = attributes.flag(default=False)
_YES = attributes.flag(default=True)

CHOLESKY = KernelSpec("Cholesky", ("input",), _infer_same_square, **_NUMBERS)
MATRIX_INVERSE = KernelSpec(
    "MatrixInverse", ("input",), _infer_same_square, {"adjoint": _NO}, **_NUMBERS
)
MATRIX_SOLVE = KernelSpec(
    "MatrixSolve",
    ("matrix", "rhs"),
    _infer_matrix_solve,
    attributes={"adjoint": _NO},
    accepts=dt.NUMERIC,
    promote=("matrix", "rhs"),
    inexact=True,
)
MATRIX_DETERMINANT = KernelSpec(
    "MatrixDeterminant", ("input",), _infer_matrix_determinant, **_NUMBERS
)
LOG_MATRIX_DETERMINANT = KernelSpec(
    "LogMatrixDeterminant",
    ("input",),
    _infer_log_matrix_determinant,
    outputs=("sign", "log_abs_determinant"),
    **_NUMBERS,
)
QR = KernelSpec(
    "Qr", ("input",), _infer_qr, {"full_matrices": _NO}, outputs=("q", "r"), **_NUMBERS
)
SVD = KernelSpec(
    "Svd",
    ("input",),
    _infer_svd,
    {"compute_uv": _YES, "full_matrices": _NO},
    outputs=("s", "u", "vh"),
    **_NUMBERS,
)
SELF_ADJOINT_EIG = KernelSpec(
    "SelfAdjointEigV2",
    ("input",),
    _infer_self_adjoint_eig,
    {"compute_v": _YES},
    outputs=("e", "v"),
    **_NUMBERS,
)
EIG = KernelSpec(
    "Eig", ("input",), _infer_eig, {"compute_v": _YES}, outputs=("e", "v"), **_NUMBERS
)


def _infer_pseudo_inverse(input: TensorType, rtol: TensorType | None) -> TensorType:
    batch, rows, columns = _check_matrices(input)
    if rtol is not None and shapes.broadcast(batch, rtol.shape) != batch:
        raise ShapeError(f"rtol of shape {list(rtol.shape)} does not broadcast to {list(batch)}")
    return TensorType(input.dtype, (*batch, columns, rows))


PSEUDO_INVERSE = KernelSpec(
    "PseudoInverse",
    ("input", "rtol?"),
    _infer_pseudo_inverse,
    accepts={"input": dt.NUMERIC, "rtol": dt.FLOATING},
    promote=("input",),
    inexact=True,
)


class QRResult(NamedTuple):
    """The result of ``qr``."""

    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    """The result of ``svd``."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class EigResult(NamedTuple):
    """The result of ``eigh`` and ``eig``."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SlogdetResult(NamedTuple):
    """The result of ``slogdet``."""

    sign: Tensor
    logabsdet: Tensor


def cholesky(x: Any, /, *, upper: bool = False) -> Tensor:
    """Return the lower triangular L with ``L @ L^H = x``; with ``upper`` U with ``U^H @ U = x``.

    Args:
        x: [..., n, n], Hermitian and positive definite; only the lower triangle is read.
            Integers become float32.
        upper: return the conjugate transpose instead.

    The gradient is with respect to a Hermitian matrix, and Hermitian itself.

    Raises:
        ShapeError: x does not hold square matrices.
        LinAlgError: a matrix is not positive definite, as with NaN or infinities.

    """
    lower = dispatch(CHOLESKY, x)
    return adjoint(lower) if upper else lower


def adjoint(x: Tensor) -> Tensor:
    """Return the conjugate transpose of matrices."""
    turned = matrix_transpose(x)
    return conj(turned) if x.dtype in dt.COMPLEX else turned


def det(x: Any, /) -> Tensor:
    """Return the determinants of the matrices [..., n, n]; 1 for n = 0.

    Integers become float32. The gradient needs the inverse, so it fails for singular matrices.

    Raises:
        ShapeError: x does not hold square matrices.

    """
    return dispatch(MATRIX_DETERMINANT, x)


def slogdet(x: Any, /) -> SlogdetResult:
    """Return sign and logarithm of the absolute value of determinants: ``sign * exp(logabsdet)``.

    It does not overflow or underflow where ``det`` does. A singular matrix gives 0 and -inf. The
    sign of a complex matrix has modulus 1.

    Raises:
        ShapeError: x does not hold square matrices.

    """
    sign, logarithm = dispatch_multiple(LOG_MATRIX_DETERMINANT, x)
    return SlogdetResult(sign, logarithm)


def inv(x: Any, /) -> Tensor:
    """Return the inverses of the matrices [..., n, n]. Integers become float32.

    Raises:
        ShapeError: x does not hold square matrices.
        LinAlgError: a matrix is singular.

    """
    return dispatch(MATRIX_INVERSE, x)


def pinv(x: Any, /, *, rtol: Any = None) -> Tensor:
    """Return the Moore-Penrose pseudo-inverses [..., n, m] of the matrices [..., m, n].

    Args:
        x: integers become float32.
        rtol: singular values up to ``rtol`` times the largest count as 0: a number, or one per
            matrix. By default ``max(m, n) * eps`` of the dtype.

    The gradient is valid where the rank is constant.

    Raises:
        ShapeError: the rank is below 2.
        LinAlgError: the algorithm does not converge, or x has NaN or infinities.

    """
    tensor = as_tensor(x, what="pinv: x")
    real_dtype = dt.real_part(dt.inexact(tensor.dtype))
    if rtol is None and real_dtype.compute is not real_dtype and tensor.ndim >= 2:
        rtol = max(tensor.shape[-2:]) * real_dtype.eps  # not that of what it is computed in
    if rtol is None:
        return dispatch(PSEUDO_INVERSE, tensor, None)
    return dispatch(PSEUDO_INVERSE, tensor, as_tensor(rtol, real_dtype, what="pinv: rtol"))


def solve(x1: Any, x2: Any, /) -> Tensor:
    """Return the solution x of ``x1 @ x = x2``.

    Args:
        x1: [..., n, n]; integers become float32.
        x2: a vector [n], or [..., n, k]; leading axes broadcast with those of ``x1``.

    Raises:
        ShapeError: x1 does not hold square matrices, or the sizes do not fit.
        LinAlgError: a matrix is singular.

    """
    rhs = as_tensor(x2, what="solve: x2")
    if rhs.ndim == 1:
        return squeeze(dispatch(MATRIX_SOLVE, x1, expand_dims(rhs, axis=1)), -1)
    return dispatch(MATRIX_SOLVE, x1, rhs)


def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """Return Q with orthonormal columns and upper triangular R with ``Q @ R = x``.

    Args:
        x: [..., m, n].
        mode: "reduced": Q is [..., m, k] and R [..., k, n] with k = min(m, n); "complete": Q is
            [..., m, m] and R [..., m, n]. (tfjs: ``fullMatrices``.)

    The gradient needs at least as many rows as Q has columns, hence "reduced" if m > n, and
    linearly independent leading columns.

    Raises:
        ShapeError: the rank is below 2.
        ArgumentError: an unknown mode.

    """
    choice(mode, ("reduced", "complete"), "qr: mode")
    q, r = dispatch_multiple(QR, x, full_matrices=mode == "complete")
    return QRResult(q, r)


def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """Return the singular value decomposition ``U @ diag(S) @ Vh = x``.

    Args:
        x: [..., m, n].
        full_matrices: whether U is [..., m, m] and Vh [..., n, n]; else they are [..., m, k] and
            [..., k, n] with k = min(m, n).

    S has the singular values [..., k], largest first. Gradients of U and Vh need distinct
    singular values; full matrices that are not square have none. The phases of complex vectors
    are arbitrary, here and in ``eigh`` and ``eig``, and losses must not depend on them.

    Raises:
        ShapeError: the rank is below 2.
        LinAlgError: the algorithm does not converge, or x has NaN or infinities.

    """
    s, u, vh = dispatch_multiple(SVD, x, full_matrices=full_matrices)
    return SVDResult(u, s, vh)


def svdvals(x: Any, /) -> Tensor:
    """Return the singular values [..., min(m, n)], largest first; errors are those of ``svd``."""
    return dispatch_multiple(SVD, x, compute_uv=False)[0]


def eigh(x: Any, /) -> EigResult:
    """Return eigenvalues and eigenvectors of Hermitian matrices: ``x @ v = v @ diag(e)``.

    ``x`` is [..., n, n]; only its lower triangle is read. The eigenvalues are real, smallest
    first, the eigenvectors orthonormal columns. The gradient is with respect to a Hermitian
    matrix; for eigenvectors it needs distinct eigenvalues.

    Raises:
        ShapeError: x does not hold square matrices.
        LinAlgError: the algorithm does not converge, or the triangle has NaN or infinities.

    """
    e, v = dispatch_multiple(SELF_ADJOINT_EIG, x)
    return EigResult(e, v)


def eigvalsh(x: Any, /) -> Tensor:
    """Return the eigenvalues of Hermitian matrices; see ``eigh``."""
    return dispatch_multiple(SELF_ADJOINT_EIG, x, compute_v=False)[0]


def eig(x: Any, /) -> EigResult:
    """Return eigenvalues and eigenvectors (columns of length 1) of any square matrices.

    Both are complex, in no particular order. Gradients need distinct eigenvalues.

    Raises:
        ShapeError: x does not hold square matrices.
        LinAlgError: the algorithm does not converge, or x has NaN or infinities.

    """
    e, v = dispatch_multiple(EIG, x)
    return EigResult(e, v)


def eigvals(x: Any, /) -> Tensor:
    """Return the eigenvalues, which are complex, of any square matrices; see ``eig``."""
    return dispatch_multiple(EIG, x, compute_v=False)[0]
