"""Factorizations of matrices, and functions based on them. Leading axes are a batch.

Where several results are valid (signs or phases of vectors), the device decides. Kernels
have TensorFlow's names; the source of the functions is the array API standard 2025.12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import choice
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, dispatch, dispatch_multiple
from tensorplug.errors import ShapeError
from tensorplug.ops.elementwise.complexes import conj
from tensorplug.ops.movement import matrix_transpose

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["cholesky", "pinv", "qr", "svd", "svdvals"]


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


_NUMBERS: dict[str, Any] = {"accepts": dt.NUMERIC, "promote": ("input",), "inexact": True}
_NO = attributes.flag(default=False)
_YES = attributes.flag(default=True)

CHOLESKY = KernelSpec("Cholesky", ("input",), _infer_same_square, **_NUMBERS, leading=())
QR = KernelSpec(
    "Qr", ("input",), _infer_qr, {"full_matrices": _NO}, outputs=("q", "r"), **_NUMBERS, leading=()
)
SVD = KernelSpec(
    "Svd",
    ("input",),
    _infer_svd,
    {"compute_uv": _YES, "full_matrices": _NO},
    outputs=("s", "u", "vh"),
    **_NUMBERS,
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


def cholesky(x: ArrayLike, /, *, upper: bool = False) -> Tensor:
    """Return the lower triangular L with ``L @ L^H = x``; with ``upper``, U with ``U^H @ U = x``.

    Args:
        x: [..., n, n], Hermitian and positive definite; only the lower triangle is read.
            Integers become float32.
        upper: return the conjugate transpose instead.

    Returns:
        [..., n, n] in the dtype of x, with zeros in the other triangle.

    The gradient is with respect to a Hermitian matrix, and Hermitian itself.

    Raises:
        ShapeError: x does not hold square matrices.
        LinAlgError: a matrix is not positive definite, as with NaN or infinities.

    Source: the array API standard.

    Examples:
        >>> tp.linalg.cholesky([[4.0, 2.0], [2.0, 10.0]])
        Tensor([[2., 0.],
                [1., 3.]], dtype=float32, device='cpu')
        >>> tp.linalg.cholesky([[4.0, 2.0], [2.0, 10.0]], upper=True)
        Tensor([[2., 1.],
                [0., 3.]], dtype=float32, device='cpu')

    """
    lower = dispatch(CHOLESKY, x)
    return adjoint(lower) if upper else lower


def adjoint(x: Tensor) -> Tensor:
    """Return the conjugate transpose of matrices."""
    turned = matrix_transpose(x)
    return conj(turned) if x.dtype in dt.COMPLEX else turned


def pinv(x: ArrayLike, /, *, rtol: ArrayLike | None = None) -> Tensor:
    """Return the Moore-Penrose pseudo-inverses [..., n, m] of the matrices [..., m, n].

    Args:
        x: integers become float32.
        rtol: singular values up to ``rtol`` times the largest count as 0: a number, or one per
            matrix. By default ``max(m, n) * eps`` of the dtype.

    The gradient is valid where the rank is constant.

    Raises:
        ShapeError: the rank is below 2.
        LinAlgError: the algorithm does not converge, or x has NaN or infinities.

    Source: the array API standard.

    Examples:
        >>> tp.linalg.pinv([[1.0, 0.0], [0.0, 4.0], [0.0, 0.0]]).numpy().round(4)
        array([[1.  , 0.  , 0.  ],
               [0.  , 0.25, 0.  ]], dtype=float32)
        >>> tp.linalg.pinv([[2.0, 0.0], [0.0, 0.0]]).numpy().round(4)  # singular
        array([[0.5, 0. ],
               [0. , 0. ]], dtype=float32)

    """
    tensor = as_tensor(x, what="pinv: x")
    real_dtype = dt.real_part(dt.inexact(tensor.dtype))
    if rtol is None and real_dtype.compute is not real_dtype and tensor.ndim >= 2:
        rtol = max(tensor.shape[-2:]) * real_dtype.eps  # not that of what it is computed in
    if rtol is None:
        return dispatch(PSEUDO_INVERSE, tensor, None)
    return dispatch(PSEUDO_INVERSE, tensor, as_tensor(rtol, real_dtype, what="pinv: rtol"))


def qr(x: ArrayLike, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
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

    Source: the array API standard.

    Examples:
        >>> x = tp.asarray([[3.0, 1.0], [4.0, 2.0], [0.0, 5.0]])
        >>> Q, R = tp.linalg.qr(x)
        >>> Q.shape, R.shape
        ((3, 2), (2, 2))
        >>> bool(tp.allclose(Q @ R, x, atol=1e-5))
        True
        >>> bool(tp.allclose(Q.T @ Q, tp.eye(2), atol=1e-5))
        True
        >>> tp.linalg.qr(x, mode="complete").Q.shape
        (3, 3)

    """
    choice(mode, ("reduced", "complete"), "qr: mode")
    q, r = dispatch_multiple(QR, x, full_matrices=mode == "complete")
    return QRResult(q, r)


def svd(x: ArrayLike, /, *, full_matrices: bool = True) -> SVDResult:
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

    Source: the array API standard.

    Examples:
        >>> x = tp.asarray([[0.0, 3.0, 0.0], [4.0, 0.0, 0.0]])
        >>> U, S, Vh = tp.linalg.svd(x, full_matrices=False)
        >>> S.numpy().round(4)
        array([4., 3.], dtype=float32)
        >>> U.shape, Vh.shape
        ((2, 2), (2, 3))
        >>> bool(tp.allclose(U * S @ Vh, x, atol=1e-5))
        True

    """
    s, u, vh = dispatch_multiple(SVD, x, full_matrices=full_matrices)
    return SVDResult(u, s, vh)


def svdvals(x: ArrayLike, /) -> Tensor:
    """Return the singular values [..., min(m, n)], largest first; errors are those of ``svd``.

    ``x``: the matrices [..., m, n].

    Source: the array API standard.

    Examples:
        >>> tp.linalg.svdvals([[0.0, 3.0, 0.0], [4.0, 0.0, 0.0]]).numpy().round(4)
        array([4., 3.], dtype=float32)

    """
    return dispatch_multiple(SVD, x, compute_uv=False)[0]
