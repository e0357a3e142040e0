"""Linear least squares."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.library.linalg.matrices import count_rank
from tensorplug.library.linalg.norms import square_moduli
from tensorplug.plugin import arguments, kinds
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["lstsq"]


class LstsqResult(NamedTuple):
    """The result of ``lstsq``."""

    x: Tensor
    residuals: Tensor
    rank: Tensor
    s: Tensor


def lstsq(a: ArrayLike, b: ArrayLike, /, rcond: float | None = None) -> LstsqResult:
    """Return the x of least norm that minimizes the norm of ``a @ x - b``.

    The solution is ``pinv(a) @ b``, with one step of iterative refinement. Its gradients with
    respect to ``a`` and ``b`` are valid where the rank is constant.

    Args:
        a: [..., m, n]; integers become float32.
        b: a vector [m], or [..., m, k]; leading axes broadcast with those of ``a``.
        rcond: singular values of ``a`` up to ``rcond`` times the largest count as 0. By default
            ``max(m, n) * eps`` of the dtype.

    Returns:
        ``x`` [n] or [..., n, k]; ``residuals`` [..., k] ([1] for a vector), the sums of the
        squares of ``b - a @ x``; ``rank`` [...] of the matrices, int32; ``s`` [..., min(m, n)],
        their singular values, largest first. (NumPy returns no residuals if ``m <= n`` or the
        rank is below n. Here the shape does not depend on the data.)

    Raises:
        ShapeError: the rank of ``a`` is below 2, or the sizes do not fit.
        DTypeError: strings.
        ArgumentError: ``rcond`` is not a number.
        LinAlgError: the algorithm does not converge, or ``a`` has NaN or infinities.

    Source: NumPy's lstsq.

    Examples:
        >>> a, b = [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]], [1.0, 3.0, 5.0]
        >>> slope, intercept = tp.linalg.lstsq(a, b).x
        >>> round(float(slope), 4), round(float(intercept), 4)
        (2.0, 1.0)
        >>> tp.linalg.lstsq(a, b).rank
        Tensor(2, dtype=int32, device='cpu')

    """
    matrix, right = kinds.inexact(a, "lstsq: a"), kinds.inexact(b, "lstsq: b")
    limit = dt.as_number(rcond)
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float)):
        raise ArgumentError(
            f"lstsq: rcond must be a number or None, got {arguments.quoted(rcond)}"
        )
    if matrix.ndim < 2:
        raise ShapeError(f"lstsq: a must have at least rank 2, got {matrix.type}")
    vector = right.ndim == 1
    rows = matrix.shape[-2]
    if not right.ndim or right.shape[0 if vector else -2] != rows:
        raise ShapeError(f"lstsq: b must have {rows} rows, as a has, got {right.type}")
    dtype = dt.promote((matrix.dtype, right.dtype))
    matrix, right = tp.astype(matrix, dtype), tp.astype(right, dtype)
    rhs = tp.expand_dims(right, axis=1) if vector else right
    inverse = tp.linalg.pinv(matrix, rtol=limit)
    solution = tp.matmul(inverse, rhs)
    solution = solution + tp.matmul(inverse, rhs - tp.matmul(matrix, solution))
    residuals = tp.sum(square_moduli(rhs - tp.matmul(matrix, solution)), axis=-2)
    values = tp.linalg.svdvals(matrix)
    rank = count_rank(values, matrix.shape[-2:], limit)
    return LstsqResult(tp.squeeze(solution, -1) if vector else solution, residuals, rank, values)
