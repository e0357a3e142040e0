"""Diagonals, bands and triangles of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import chained, dispatch, dispatch_unary
from tensorplug.errors import ShapeError

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, TensorLike

__all__ = ["diag", "tril", "triu"]


def _infer_diag(x: TensorType) -> TensorType:
    return TensorType(x.dtype, x.shape * 2)


DIAG = KernelSpec("Diag", ("x",), _infer_diag)


def _infer_triangle(x: TensorType) -> TensorType:
    if x.rank < 2:
        raise ShapeError(f"x must have at least rank 2, got rank {x.rank}")
    return x


def _infer_matrix_band_part(
    input: TensorType, num_lower: TensorType, num_upper: TensorType
) -> TensorType:
    for name, limit in (("num_lower", num_lower), ("num_upper", num_upper)):
        if limit.size != 1:
            raise ShapeError(f"{name} must be one number, got {limit}")
    return _infer_triangle(input)


_COUNTS = dt.INTEGER - {dt.uint64}  # which has no common dtype with signed differences

MATRIX_BAND_PART = KernelSpec(
    "MatrixBandPart",
    ("input", "num_lower", "num_upper"),
    _infer_matrix_band_part,
    accepts={"input": dt.FIXED, "num_lower": _COUNTS, "num_upper": _COUNTS},
    exact=True,
)


TRIANGLE = KernelSpec(
    "Triangle",
    ("x",),
    _infer_triangle,
    attributes={"upper": attributes.flag(default=False), "k": attributes.integer(0)},
    accepts=dt.FIXED,
    exact=True,
)


def diag(x: TensorLike, /) -> Tensor:
    """Return zeros with the elements of ``x`` on the diagonal.

    ``out[i, i] = x[i]``, where i is an index into all axes of ``x``: the result has the
    shape ``x.shape + x.shape``. For strings, the other elements are empty. Unlike NumPy's
    function of this name, it does not read the diagonal of a matrix; ``tp.linalg.diagonal`` does.

    Source: TensorFlow's Diag.

    Examples:
        >>> tp.diag([1, 2])
        Tensor([[1, 0],
                [0, 2]], dtype=int32, device='cpu')
        >>> tp.diag([[1, 2, 3], [4, 5, 6]]).shape
        (2, 3, 2, 3)

    """
    return dispatch_unary(DIAG, x)


def band_part(x: Any, num_lower: Any, num_upper: Any) -> Tensor:
    """Return matrices with zeros outside a band around the diagonal.

    Args:
        x: numbers or booleans of shape ``[..., M, N]``.
        num_lower: number of diagonals to keep below the main one, negative for all: an integer,
            or a tensor of one.
        num_upper: likewise above it.

    Returns:
        ``x[..., i, j]`` where ``num_lower < 0 or i - j <= num_lower``, and likewise
        ``num_upper < 0 or j - i <= num_upper``; otherwise 0.

    Raises:
        ShapeError: the rank is less than 2, or a number of diagonals is not one number.
        DTypeError: strings, or a number of diagonals that is not an integer.

    Source: TensorFlow's MatrixBandPart.

    """
    return dispatch(MATRIX_BAND_PART, x, num_lower, num_upper)


@chained
def tril(x: ArrayLike, /, *, k: int = 0) -> Tensor:
    """Return the lower triangles of matrices: ``x[..., i, j]`` where ``j - i <= k``, else 0.

    ``x`` holds numbers or booleans of shape ``[..., M, N]``; the result has its type.

    Raises:
        ShapeError: the rank is less than 2.
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> x = tp.asarray([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
        >>> tp.tril(x)
        Tensor([[1, 0, 0],
                [4, 5, 0],
                [7, 8, 9]], dtype=int32, device='cpu')
        >>> tp.tril(x, k=-1)
        Tensor([[0, 0, 0],
                [4, 0, 0],
                [7, 8, 0]], dtype=int32, device='cpu')

    """
    return dispatch(TRIANGLE, x, upper=False, k=k)


@chained
def triu(x: ArrayLike, /, *, k: int = 0) -> Tensor:
    """Return the upper triangles of matrices: ``x[..., i, j]`` where ``j - i >= k``, else 0.

    ``x`` holds numbers or booleans of shape ``[..., M, N]``; the result has its type.

    Raises:
        ShapeError: the rank is less than 2.
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> x = tp.asarray([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
        >>> tp.triu(x)
        Tensor([[1, 2, 3],
                [0, 5, 6],
                [0, 0, 9]], dtype=int32, device='cpu')
        >>> tp.triu(tp.ones((3, 3), dtype=bool), k=1)  # a mask of what comes later
        Tensor([[False,  True,  True],
                [False, False,  True],
                [False, False, False]], dtype=bool, device='cpu')

    """
    return dispatch(TRIANGLE, x, upper=True, k=k)
