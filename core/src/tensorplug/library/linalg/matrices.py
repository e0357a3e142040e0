"""Functions of matrices composed of other ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.plugin import as_tensor, default_integers, shapes
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike, DTypeLike, SupportsArray

__all__ = [
    "band_part",
    "cross",
    "diagonal",
    "gram_schmidt",
    "matrix_power",
    "matrix_rank",
    "outer",
    "trace",
]


def _read_matrices(x: Any, caller: str, *, square: bool = False) -> Tensor:
    tensor = as_tensor(x, what=f"{caller}: x")
    if tensor.ndim < 2:
        raise ShapeError(f"{caller}: x must have at least rank 2, got {tensor.type}")
    if square and tensor.shape[-2] != tensor.shape[-1]:
        raise ShapeError(f"{caller}: the matrices must be square, got {tensor.type}")
    return tensor


def cross(x1: ArrayLike, x2: ArrayLike, /, axis: int = -1) -> Tensor:
    """Return the cross products of vectors of 3 elements along ``axis``; other axes broadcast.

    ``x1``: the left operand; ``x2``: the right one.

    Source: the array API standard 2025.12.

    Raises:
        ShapeError: the axis does not have length 3.

    Examples:
        >>> tp.linalg.cross([1, 0, 0], [0, 1, 0])
        Tensor([0, 0, 1], dtype=int32, device='cpu')
        >>> tp.linalg.cross([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [0.0, 0.0, 2.0])
        Tensor([[ 0., -2.,  0.],
                [ 2.,  0.,  0.]], dtype=float32, device='cpu')

    """
    a, b = as_tensor(x1, what="cross: x1"), as_tensor(x2, what="cross: x2")
    for vectors in (a, b):
        at = shapes.normalize_axis(axis, vectors.ndim, f"cross of {vectors.type}: axis")
        if vectors.shape[at] != 3:
            raise ShapeError(
                f"cross: the operands must have length 3 along axis {axis}, got {vectors.type}"
            )
    if axis >= 0 and a.ndim != b.ndim:
        raise ShapeError(
            f"cross of {a.type} and {b.type}: if the ranks differ, axis must be negative, got "
            f"{axis}"
        )
    after = tp.roll(a, -1, axis=axis) * tp.roll(b, -2, axis=axis)
    return after - tp.roll(a, -2, axis=axis) * tp.roll(b, -1, axis=axis)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Return the products ``x1[i] * x2[j]`` of two vectors.

    Source: the array API standard 2025.12.

    Raises:
        ShapeError: an operand that is not a vector.

    Examples:
        >>> tp.linalg.outer([1, 2], [10, 20, 30])
        Tensor([[10, 20, 30],
                [20, 40, 60]], dtype=int32, device='cpu')

    """
    a, b = as_tensor(x1, what="outer: x1"), as_tensor(x2, what="outer: x2")
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError(f"outer: the operands must be vectors, got {a.type} and {b.type}")
    return tp.expand_dims(a, axis=1) * b


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Tensor:
    """Return the diagonals [..., k] of the matrices [..., m, n].

    ``offset`` selects a diagonal above (positive) or below; beyond the matrix it is empty.
    ``x``: the matrices.

    Source: the array API standard 2025.12.

    Raises:
        ShapeError: the rank is below 2.

    Examples:
        >>> x = tp.reshape(tp.arange(6), (2, 3))
        >>> tp.linalg.diagonal(x)
        Tensor([0, 4], dtype=int32, device='cpu')
        >>> tp.linalg.diagonal(x, offset=1)
        Tensor([1, 5], dtype=int32, device='cpu')

    """
    tensor = _read_matrices(x, "diagonal")
    by = shapes.index(offset, "diagonal: offset")
    *batch, rows, columns = tensor.shape
    length = max(0, min(rows, columns - by) if by >= 0 else min(rows + by, columns))
    first = by if by >= 0 else -by * columns
    flat = tp.reshape(tensor, (*batch, rows * columns))
    step = columns + 1
    stop = first + (length - 1) * step + 1 if length else first
    return flat[..., first if length else 0 : stop if length else 0 : step]


@default_integers.accumulates(dt.INTEGER | dt.BOOL)
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """Return the sums of the diagonals of the matrices [..., m, n], in the dtype of ``sum``.

    ``x``: the matrices; ``offset``: selects a diagonal, as for ``diagonal``.

    Source: the array API standard 2025.12.

    Raises:
        ShapeError: the rank is below 2.

    Examples:
        >>> tp.linalg.trace([[1, 2], [3, 4]])
        Tensor(5, dtype=int32, device='cpu')
        >>> tp.linalg.trace([[1, 2], [3, 4]], offset=1)
        Tensor(2, dtype=int32, device='cpu')

    """
    return tp.sum(diagonal(_read_matrices(x, "trace"), offset=offset), axis=-1, dtype=dtype)


def matrix_power(x: ArrayLike, n: int, /) -> Tensor:
    """Return the matrices [..., m, m] to the power ``n``.

    Power 0 gives identity matrices; a negative power multiplies the inverses. Source: the
    array API standard 2025.12.

    ``x``: the matrices [..., n, n].

    Raises:
        ShapeError: x does not hold square matrices.
        LinAlgError: a matrix is singular and ``n`` negative.

    Examples:
        >>> x = [[1, 1], [1, 0]]
        >>> tp.linalg.matrix_power(x, 10)  # Fibonacci's numbers
        Tensor([[89, 55],
                [55, 34]], dtype=int32, device='cpu')
        >>> tp.linalg.matrix_power([[2.0, 0.0], [0.0, 4.0]], -1)
        Tensor([[0.5 , 0.  ],
                [0.  , 0.25]], dtype=float32, device='cpu')

    """
    base = _read_matrices(x, "matrix_power", square=True)
    times = shapes.index(n, "matrix_power: n")
    if times < 0:
        base, times = tp.linalg.inv(base), -times
    if not times:
        size = base.shape[-1]
        row, column = tp.reshape(tp.arange(size), (size, 1)), tp.arange(size)
        return tp.broadcast_to(tp.astype(tp.equal(row, column), base.dtype), base.shape)
    result: Tensor | None = None
    while times:
        if times & 1:
            result = base if result is None else tp.matmul(result, base)
        times >>= 1
        if times:
            base = tp.matmul(base, base)
    assert result is not None  # times was positive
    return result


def matrix_rank(x: ArrayLike, /, *, rtol: ArrayLike | None = None) -> Tensor:
    """Return the number of singular values of each matrix that are not negligible, in int32.

    Args:
        x: [..., m, n].
        rtol: singular values up to ``rtol`` times the largest are negligible: a number, or one
            per matrix. By default ``max(m, n) * eps`` of the dtype.

    Source: the array API standard 2025.12.

    Raises:
        ShapeError: the rank is below 2.

    Examples:
        >>> tp.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]])
        Tensor(1, dtype=int32, device='cpu')
        >>> tp.linalg.matrix_rank([[1.0, 0.0], [0.0, 1e-3]], rtol=0.01)
        Tensor(1, dtype=int32, device='cpu')

    """
    tensor = _read_matrices(x, "matrix_rank")
    return count_rank(tp.linalg.svdvals(tensor), tensor.shape[-2:], rtol)


def count_rank(values: Tensor, shape: shapes.Shape, rtol: Any) -> Tensor:
    """Return the ranks of matrices of ``shape`` with singular values [..., k], largest first."""
    if not values.shape[-1]:
        return tp.sum(tp.astype(values, dt.default_int), axis=-1)
    limit = dt.as_number(rtol)
    if limit is None:
        limit = max(shape) * values.dtype.eps
    elif not isinstance(limit, int | float):
        tolerance = as_tensor(limit, values.dtype, what="matrix_rank: rtol")
        limit = tp.expand_dims(tolerance, axis=-1)
    largest = tp.max(values, axis=-1, keepdims=True)
    return tp.sum(tp.astype(tp.greater(values, largest * limit), dt.default_int), axis=-1)


def band_part(a: ArrayLike, num_lower: int, num_upper: int) -> Tensor:
    """Return the matrices [..., m, n] with zeros outside a band around the diagonal.

    ``out[i, j] = a[i, j] if i - j <= num_lower and j - i <= num_upper else 0``; a negative number
    keeps the whole triangle. (TensorFlow.js's bandPart.)

    Raises:
        ShapeError: the rank is below 2.
        ArgumentError: ``num_lower`` exceeds the rows, or ``num_upper`` the columns.

    Examples:
        >>> tp.linalg.band_part(tp.ones((3, 4)), 0, 1)
        Tensor([[1., 1., 0., 0.],
                [0., 1., 1., 0.],
                [0., 0., 1., 1.]], dtype=float32, device='cpu')
        >>> tp.linalg.band_part([[1, 2], [3, 4]], -1, 0)  # the lower triangle
        Tensor([[1, 0],
                [3, 4]], dtype=int32, device='cpu')

    """
    tensor = _read_matrices(a, "band_part")
    rows, columns = tensor.shape[-2:]
    lower = shapes.index(num_lower, "band_part: num_lower")
    upper = shapes.index(num_upper, "band_part: num_upper")
    if lower > rows or upper > columns:
        raise ArgumentError(
            f"band_part of {tensor.type}: num_lower must be at most {rows} and num_upper at most "
            f"{columns}, got {lower} and {upper}"
        )
    below = tp.reshape(tp.arange(rows), (rows, 1)) - tp.arange(columns)
    inside = tp.logical_and(
        tp.less_equal(below, rows if lower < 0 else lower),
        tp.less_equal(-below, columns if upper < 0 else upper),
    )
    zero = tp.astype(as_tensor(0), tensor.dtype)
    return tp.where(inside, tensor, zero)


@overload
def gram_schmidt(xs: Tensor | SupportsArray) -> Tensor: ...
@overload
def gram_schmidt(xs: Sequence[ArrayLike]) -> list[Tensor]: ...
def gram_schmidt(xs: Sequence[ArrayLike] | Tensor | SupportsArray) -> list[Tensor] | Tensor:
    """Return an orthonormal basis of the span of ``xs``, by the modified Gram-Schmidt process.

    Args:
        xs: a list of vectors of the same length, or a matrix of row vectors. They must be
            linearly independent.

    Returns:
        A list or a matrix, as ``xs``. (TensorFlow.js's gramSchmidt.)

    Raises:
        ShapeError: there are no vectors or too many, or their lengths differ.

    Examples:
        >>> tp.linalg.gram_schmidt(tp.asarray([[3.0, 0.0], [5.0, 2.0]]))
        Tensor([[1., 0.],
                [0., 1.]], dtype=float32, device='cpu')
        >>> u, v = tp.linalg.gram_schmidt([[0.0, 2.0], [3.0, 7.0]])
        >>> v
        Tensor([1., 0.], dtype=float32, device='cpu')

    """
    if isinstance(xs, list | tuple):
        vectors = [as_tensor(x, what="gram_schmidt: xs") for x in xs]
    else:
        matrix = as_tensor(xs, what="gram_schmidt: xs")
        if matrix.ndim != 2:
            raise ShapeError(f"gram_schmidt: xs must be vectors or a matrix, got {matrix.type}")
        vectors = [matrix[row] for row in range(matrix.shape[0])]
    if not vectors or any(x.ndim != 1 or x.shape != vectors[0].shape for x in vectors):
        types = ", ".join(str(x.type) for x in vectors) or "none"
        raise ShapeError(f"gram_schmidt: xs must be vectors of the same length, got {types}")
    if len(vectors) > vectors[0].shape[0]:
        raise ShapeError(
            f"gram_schmidt: {len(vectors)} vectors of {vectors[0].shape[0]} elements cannot be "
            "independent"
        )
    basis: list[Tensor] = []
    for x in vectors:
        rest = x
        for done in basis:
            rest = rest - tp.vecdot(done, rest) * done
        basis.append(rest / tp.linalg.vector_norm(rest))
    return basis if isinstance(xs, list | tuple) else tp.stack(basis)
