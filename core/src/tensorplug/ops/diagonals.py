"""Diagonals, bands and triangles of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import (
    chained,
    dispatch,
    dispatch_unary,
    run_on,
)
from tensorplug.errors import DTypeError, ShapeError
from tensorplug.ops.movement import broadcast_to

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import (
        ArrayLike,
        DTypeLike,
        ShapeLike,
        TensorLike,
    )

__all__ = ["diag", "eye", "tril", "triu"]


def _infer_diag(x: TensorType) -> TensorType:
    return TensorType(x.dtype, x.shape * 2)


DIAG = KernelSpec("Diag", ("x",), _infer_diag, linear=("x",))


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
    linear=("input",),
)


TRIANGLE = KernelSpec(
    "Triangle",
    ("x",),
    _infer_triangle,
    attributes={"upper": attributes.flag(default=False), "k": attributes.integer(0)},
    accepts=dt.FIXED,
    exact=True,
    linear=("x",),
    leading=(),
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


def _infer_eye(*, n_rows: int, n_cols: int, dtype: DType) -> TensorType:
    if dtype is dt.string:
        raise DTypeError("dtype must not be string: an identity matrix contains numbers")
    return TensorType(dtype, (n_rows, n_cols))


EYE = KernelSpec(
    "Eye",
    (),
    _infer_eye,
    attributes={
        "n_rows": attributes.integer(at_least=0),
        "n_cols": attributes.optional(
            attributes.integer(at_least=0), lambda known: known["n_rows"]
        ),
        "k": attributes.integer(0),
        "dtype": attributes.dtype("float32"),
    },
)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    batch_shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return a matrix with ones on a diagonal and zeros otherwise, float32 by default.

    Args:
        n_rows: number of rows.
        n_cols: number of columns; ``n_rows`` by default.
        k: the diagonal: 0 is the main one, 1 the one above it, -1 the one below.
        batch_shape: sizes of leading axes along which the matrix is repeated.
        dtype: any but strings.
        device: of the result; the active one by default.

    Raises:
        ArgumentError: a number of rows or columns is negative.
        DTypeError: ``dtype`` is string.

    Source: the array API standard; ``batch_shape`` is TensorFlow's.

    Examples:
        >>> tp.eye(2)
        Tensor([[1., 0.],
                [0., 1.]], dtype=float32, device='cpu')
        >>> tp.eye(2, 3, k=1)
        Tensor([[0., 1., 0.],
                [0., 0., 1.]], dtype=float32, device='cpu')
        >>> tp.eye(2, batch_shape=(5,)).shape
        (5, 2, 2)

    """
    result_dtype = dt.default_float if dtype is None else dt.of(dtype, "eye")
    made = run_on(
        device, lambda: dispatch(EYE, n_rows=n_rows, n_cols=n_cols, k=k, dtype=result_dtype)
    )
    if isinstance(batch_shape, tuple | list) and not batch_shape:
        return made
    batch = shapes.as_shape(batch_shape, "eye: batch_shape")
    return run_on(device, lambda: broadcast_to(made, (*batch, *made.shape)))
