"""Systems of linear equations, inverses and determinants: specs and public functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, dispatch, dispatch_multiple
from tensorplug.errors import ShapeError
from tensorplug.ops.linalg.factorization import (
    _NO,
    _NUMBERS,
    _check_matrices,
    _check_square,
    _infer_same_square,
)
from tensorplug.ops.movement import expand_dims, squeeze

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike


__all__ = ["det", "inv", "slogdet", "solve"]


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


MATRIX_INVERSE = KernelSpec(
    "MatrixInverse", ("input",), _infer_same_square, {"adjoint": _NO}, **_NUMBERS, leading=()
)
MATRIX_SOLVE = KernelSpec(
    "MatrixSolve",
    ("matrix", "rhs"),
    _infer_matrix_solve,
    attributes={"adjoint": _NO},
    accepts=dt.NUMERIC,
    promote=("matrix", "rhs"),
    inexact=True,
    linear=("rhs",),
)
MATRIX_DETERMINANT = KernelSpec(
    "MatrixDeterminant", ("input",), _infer_matrix_determinant, **_NUMBERS, leading=()
)
LOG_MATRIX_DETERMINANT = KernelSpec(
    "LogMatrixDeterminant",
    ("input",),
    _infer_log_matrix_determinant,
    outputs=("sign", "log_abs_determinant"),
    **_NUMBERS,
    leading=(),
)


class SlogdetResult(NamedTuple):
    """The result of ``slogdet``."""

    sign: Tensor
    logabsdet: Tensor


def det(x: ArrayLike, /) -> Tensor:
    """Return the determinants of the matrices [..., n, n]; 1 for n = 0.

    Integers become float32. The gradient needs the inverse, so it fails for singular matrices.

    ``x``: the matrices [..., n, n].

    Raises:
        ShapeError: x does not hold square matrices.

    Source: the array API standard.

    Examples:
        >>> round(float(tp.linalg.det([[1.0, 2.0], [3.0, 5.0]])), 4)
        -1.0
        >>> tp.linalg.det(tp.ones((4, 3, 3))).shape
        (4,)

    """
    return dispatch(MATRIX_DETERMINANT, x)


def slogdet(x: ArrayLike, /) -> SlogdetResult:
    """Return sign and log of the absolute value of determinants: ``sign * exp(logabsdet)``.

    It does not overflow or underflow where ``det`` does. A singular matrix gives 0 and -inf. The
    sign of a complex matrix has modulus 1.

    ``x``: the matrices [..., n, n].

    Raises:
        ShapeError: x does not hold square matrices.

    Source: the array API standard.

    Examples:
        >>> sign, logarithm = tp.linalg.slogdet(-1e-20 * tp.eye(3))
        >>> float(sign), round(float(logarithm), 2)  # det, -1e-60, is too small for float32
        (-1.0, -138.16)

    """
    sign, logarithm = dispatch_multiple(LOG_MATRIX_DETERMINANT, x)
    return SlogdetResult(sign, logarithm)


def inv(x: ArrayLike, /) -> Tensor:
    """Return the inverses of the matrices [..., n, n]. Integers become float32.

    To solve equations, ``solve`` is faster and more accurate.

    ``x``: the matrices [..., n, n].

    Raises:
        ShapeError: x does not hold square matrices.
        LinAlgError: a matrix is singular.

    Source: the array API standard.

    Examples:
        >>> tp.linalg.inv([[2.0, 0.0], [0.0, 4.0]])
        Tensor([[0.5 , 0.  ],
                [0.  , 0.25]], dtype=float32, device='cpu')
        >>> tp.linalg.inv([[[1.0, 1.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])[0]
        Tensor([[ 1., -1.],
                [ 0.,  1.]], dtype=float32, device='cpu')

    """
    return dispatch(MATRIX_INVERSE, x)


def solve(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Return the solution x of ``x1 @ x = x2``.

    Args:
        x1: [..., n, n]; integers become float32.
        x2: a vector [n], or [..., n, k]; leading axes broadcast with those of ``x1``.

    Raises:
        ShapeError: x1 does not hold square matrices, or the sizes do not fit.
        LinAlgError: a matrix is singular.

    Source: the array API standard.

    Examples:
        >>> tp.linalg.solve([[2.0, 1.0], [1.0, 3.0]], [5.0, 10.0]).numpy().round(4)
        array([1., 3.], dtype=float32)
        >>> tp.linalg.solve(tp.ones((7, 1, 3, 3)) + tp.eye(3), tp.ones((2, 3, 1))).shape
        (7, 2, 3, 1)

    """
    rhs = as_tensor(x2, what="solve: x2")
    if rhs.ndim == 1:
        return squeeze(dispatch(MATRIX_SOLVE, x1, expand_dims(rhs, axis=1)), -1)
    return dispatch(MATRIX_SOLVE, x1, rhs)
