"""Eigenvalues and eigenvectors of square matrices: specs and public functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import dispatch_multiple
from tensorplug.ops.linalg.factorization import _NUMBERS, _YES, _check_square

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike


__all__ = ["eig", "eigh", "eigvals", "eigvalsh"]


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


class EigResult(NamedTuple):
    """The result of ``eigh`` and ``eig``."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def eigh(x: ArrayLike, /) -> EigResult:
    """Return eigenvalues and eigenvectors of Hermitian matrices: ``x @ v = v @ diag(e)``.

    ``x`` is [..., n, n]; only its lower triangle is read. The eigenvalues are real, smallest
    first; the eigenvectors are orthonormal columns. The gradient is with respect to a Hermitian
    matrix; for eigenvectors it needs distinct eigenvalues.

    Raises:
        ShapeError: x does not hold square matrices.
        LinAlgError: the algorithm does not converge, or the triangle has NaN or infinities.

    Source: the array API standard.

    Examples:
        >>> x = tp.asarray([[2.0, 1.0], [1.0, 2.0]])
        >>> eigenvalues, eigenvectors = tp.linalg.eigh(x)
        >>> eigenvalues.numpy().round(4)
        array([1., 3.], dtype=float32)
        >>> bool(tp.allclose(x @ eigenvectors, eigenvectors * eigenvalues, atol=1e-5))
        True

    """
    e, v = dispatch_multiple(SELF_ADJOINT_EIG, x)
    return EigResult(e, v)


def eigvalsh(x: ArrayLike, /) -> Tensor:
    """Return the eigenvalues [..., n] of Hermitian matrices, smallest first; see ``eigh``.

    ``x``: the matrices [..., n, n].

    Raises:
        ShapeError, LinAlgError: as ``eigh``.

    Source: the array API standard.

    Examples:
        >>> tp.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]]).numpy().round(4)
        array([1., 3.], dtype=float32)

    """
    return dispatch_multiple(SELF_ADJOINT_EIG, x, compute_v=False)[0]


def eig(x: ArrayLike, /) -> EigResult:
    """Return eigenvalues and eigenvectors (columns of length 1) of any square matrices.

    Both are complex, in no particular order. Gradients need distinct eigenvalues.

    ``x``: the matrices [..., n, n].

    Raises:
        ShapeError: x does not hold square matrices.
        LinAlgError: the algorithm does not converge, or x has NaN or infinities.

    Source: the array API standard.

    Examples:
        >>> x = tp.asarray([[0.0, -1.0], [1.0, 0.0]])  # a rotation by 90 degrees
        >>> eigenvalues, eigenvectors = tp.linalg.eig(x)
        >>> tp.sort(tp.imag(eigenvalues)).numpy().round(4)
        array([-1.,  1.], dtype=float32)
        >>> bool(tp.allclose(x @ eigenvectors, eigenvectors * eigenvalues, atol=1e-5))
        True

    """
    e, v = dispatch_multiple(EIG, x)
    return EigResult(e, v)


def eigvals(x: ArrayLike, /) -> Tensor:
    """Return the eigenvalues [..., n], which are complex, of any square matrices; see ``eig``.

    ``x``: the matrices [..., n, n].

    Raises:
        ShapeError, LinAlgError: as ``eig``.

    Source: the array API standard.

    Examples:
        >>> eigenvalues = tp.linalg.eigvals([[2.0, 5.0], [0.0, 3.0]])
        >>> eigenvalues.dtype
        tensorplug.complex64
        >>> tp.sort(tp.real(eigenvalues)).numpy().round(4)
        array([2., 3.], dtype=float32)

    """
    return dispatch_multiple(EIG, x, compute_v=False)[0]
