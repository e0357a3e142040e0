"""Systems of equations with triangular matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from tensorplug.contract import attributes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch.calls import as_tensor, dispatch
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.ops.linalg.systems import MATRIX_SOLVE
from tensorplug.ops.movement import expand_dims, matrix_transpose, squeeze

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["solve_triangular"]

MATRIX_TRIANGULAR_SOLVE = KernelSpec(
    "MatrixTriangularSolve",
    ("matrix", "rhs"),
    MATRIX_SOLVE.infer,
    attributes={
        "lower": attributes.flag(default=True),
        "adjoint": attributes.flag(default=False),
        "unit_diagonal": attributes.flag(default=False),
    },
    accepts=dt.NUMERIC,
    promote=("matrix", "rhs"),
    inexact=True,
    linear=("rhs",),
)

_FORMS: Final = {"N": "N", "T": "T", "C": "C", 0: "N", 1: "T", 2: "C"}


def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    /,
    trans: Literal[0, 1, 2, "N", "T", "C"] = 0,
    lower: bool = False,  # noqa: FBT001, FBT002  # SciPy's order
    unit_diagonal: bool = False,  # noqa: FBT001, FBT002
) -> Tensor:
    """Return the solution x of ``a @ x = b`` for triangular matrices ``a``.

    Args:
        a: [..., n, n]; integers become float32. Only one triangle is read.
        b: a vector [n], or [..., n, k]; leading axes broadcast with those of ``a``.
        trans: the system to solve: 0 or "N" for ``a @ x = b``, 1 or "T" for ``a.T @ x = b``, 2
            or "C" for ``a.conj().T @ x = b``.
        lower: whether the lower triangle of ``a`` is read; else the upper one.
        unit_diagonal: whether to take the diagonal of ``a`` as 1, without reading it.

    Returns:
        x, of the shape of ``b`` after broadcasting.

    Raises:
        ShapeError: ``a`` does not hold square matrices, or the sizes do not fit.
        ArgumentError: an unknown ``trans``.
        LinAlgError: an element of a diagonal is 0.

    Source: SciPy's solve_triangular; the kernel is TensorFlow's MatrixTriangularSolve.

    Examples:
        >>> tp.linalg.solve_triangular([[2.0, 1.0], [0.0, 4.0]], [4.0, 8.0])
        Tensor([1., 2.], dtype=float32, device='cpu')
        >>> tp.linalg.solve_triangular([[2.0, 0.0], [1.0, 4.0]], [4.0, 10.0], lower=True)
        Tensor([2., 2.], dtype=float32, device='cpu')
        >>> tp.linalg.solve_triangular([[2.0, 1.0], [0.0, 4.0]], [4.0, 10.0], trans="T")
        Tensor([2., 2.], dtype=float32, device='cpu')

    """
    transposition: Any = trans  # it may be unhashable
    if (
        isinstance(transposition, bool)
        or not isinstance(transposition, int | str)
        or transposition not in _FORMS
    ):
        raise ArgumentError(
            f"solve_triangular: trans must be 0, 1, 2, 'N', 'T' or 'C', got {quoted(trans)}"
        )
    form = _FORMS[trans]
    matrix, rhs = (
        as_tensor(a, what="solve_triangular: a"),
        as_tensor(b, what="solve_triangular: b"),
    )
    if matrix.ndim < 2:
        raise ShapeError(f"solve_triangular: a must have at least rank 2, got {matrix.type}")
    if not isinstance(lower, bool):
        raise ArgumentError(f"solve_triangular: lower must be a bool, got {quoted(lower)}")
    if form == "T":
        matrix, lower = matrix_transpose(matrix), not lower
    vector = rhs.ndim == 1
    solved = dispatch(
        MATRIX_TRIANGULAR_SOLVE,
        matrix,
        expand_dims(rhs, axis=1) if vector else rhs,
        lower=lower,
        adjoint=form == "C",
        unit_diagonal=unit_diagonal,
    )
    return squeeze(solved, -1) if vector else solved
