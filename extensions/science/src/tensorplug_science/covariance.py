"""Covariances and correlations."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug.errors import ShapeError
from tensorplug.plugin import arguments, kinds
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["corrcoef", "cov"]


def cov(x: ArrayLike, /, *, correction: float = 1.0) -> Tensor:
    """Return the covariances of variables, whose observations are rows.

    ``c[i, j] = sum((x[i] - mean(x[i])) * conj(x[j] - mean(x[j]))) / (n - correction)``.

    Args:
        x: ``[..., variables, n]``, or ``[n]`` for one variable; integers become float32.
        correction: 1 estimates the covariances of the population, 0 gives those of x.

    Returns:
        ``[..., variables, variables]``, or one number; NaN unless ``n - correction`` is
        positive.

    Raises:
        ShapeError: rank 0.
        DTypeError: strings.
        ArgumentError: ``correction`` is not a number.

    Source: NumPy's cov; the name of the correction is the array API standard's.

    Examples:
        >>> tp.cov([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]])
        Tensor([[ 1., -2.],
                [-2.,  4.]], dtype=float32, device='cpu')
        >>> tp.cov([1.0, 2.0, 3.0, 4.0], correction=0)
        Tensor(1.25, dtype=float32, device='cpu')

    """
    tensor = _read_rows(x, "cov")
    result = _compute_covariances(tensor, correction, "cov")
    return result if tensor.ndim > 1 else tp.reshape(result, ())


def corrcoef(x: ArrayLike, /) -> Tensor:
    """Return the correlations of variables: ``c[i, j] / sqrt(c[i, i] * c[j, j])`` of ``cov``.

    Shapes and errors are the same. The correlations of a constant variable are NaN.

    ``x``: one variable per row, one observation per column.

    Source: NumPy's corrcoef.

    Examples:
        >>> tp.corrcoef([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]]).numpy().round(4)
        array([[ 1., -1.],
               [-1.,  1.]], dtype=float32)

    """
    tensor = _read_rows(x, "corrcoef")
    covariances = _compute_covariances(tensor, 0.0, "corrcoef")
    spread = tp.sqrt(tp.real(tp.linalg.diagonal(covariances)))
    result = covariances / tp.expand_dims(spread, -1) / tp.expand_dims(spread, -2)
    return result if tensor.ndim > 1 else tp.reshape(result, ())


def _read_rows(x: Any, caller: str) -> Tensor:
    tensor = kinds.inexact(x, f"{caller}: x")
    if not tensor.ndim:
        raise ShapeError(f"{caller}: x must have at least rank 1, got {tensor.type}")
    return tensor


def _compute_covariances(x: Tensor, correction: float, caller: str) -> Tensor:
    correction = arguments.real(dt.as_number(correction), f"{caller}: correction")
    rows = x if x.ndim > 1 else tp.reshape(x, (1, *x.shape))
    away = rows - tp.mean(rows, axis=-1, keepdims=True)
    count = rows.shape[-1] - correction
    across = tp.matrix_transpose(tp.conj(away) if x.dtype in dt.COMPLEX else away)
    return tp.matmul(away, across) / (count if count > 0 else nan)
