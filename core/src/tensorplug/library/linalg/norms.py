"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.plugin import arguments, as_tensor, chained, kinds, shapes
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike, Axis

__all__ = ["euclidean_norm", "matrix_norm", "norm", "vector_norm"]


def _read_floating(x: Any, caller: str) -> Tensor:
    tensor = as_tensor(x, what=f"{caller}: x")
    return tensor if tensor.dtype in dt.INEXACT else tp.astype(tensor, dt.default_float)


def _take_root(total: Tensor, power: float) -> Tensor:
    """Return ``total ** (1 / power)``, with gradient 0 for totals of 0."""
    zero = tp.equal(total, 0)
    safe = tp.where(zero, 1.0, total)
    return tp.where(zero, 0.0, tp.sqrt(safe) if power == 2 else safe ** (1 / power))


def square_moduli(x: Tensor) -> Tensor:
    """Return ``|x|**2`` without ``|x|``, whose second derivative is wrong at 0."""
    return tp.square(tp.real(x)) + tp.square(tp.imag(x)) if x.dtype in dt.COMPLEX else tp.square(x)


def vector_norm(
    x: ArrayLike, /, axis: Axis | None = None, *, keepdims: bool = False, ord: float = 2
) -> Tensor:
    """Return the norm of vectors along ``axis``: ``(sum |x|**ord) ** (1 / ord)``.

    Args:
        x: integers and booleans become float32. The norm of complex numbers is real.
        axis: an axis, several, or None for all elements.
        keepdims: whether to keep these axes with length 1.
        ord: any number; 0 counts nonzero elements, ``inf`` gives the largest ``|x|``,
            ``-inf`` the smallest.

    The gradient at a vector of zeros is 0. If ``ord`` is below 1, elements that are 0 get the
    gradient 0. Powers of elements are added: squares of float32 are inexact below 1e-19, and
    infinite above 1.8e19. Convert such vectors to float64, or divide them by their largest
    element before. Source: the array API standard 2025.12.

    Raises:
        ShapeError: an axis is out of range, or empty for ``-inf``.
        ArgumentError: ``ord`` is not a number.

    Examples:
        >>> x = [[3.0, 4.0], [-6.0, 8.0]]
        >>> tp.linalg.vector_norm(x, axis=1)
        Tensor([ 5., 10.], dtype=float32, device='cpu')
        >>> tp.linalg.vector_norm(x, axis=1, ord=1)
        Tensor([ 7., 14.], dtype=float32, device='cpu')
        >>> tp.linalg.vector_norm(x, axis=1, ord=np.inf)
        Tensor([4., 8.], dtype=float32, device='cpu')
        >>> tp.linalg.vector_norm([0.0, 5.0, 7.0], ord=0)
        Tensor(2., dtype=float32, device='cpu')

    """
    tensor = _read_floating(x, "vector_norm")
    order = arguments.real(ord, "vector_norm: ord")
    return _compute_vector_norm(tensor, axis, order, keepdims=keepdims)


def _read_order(value: Any, caller: str) -> Any:
    """Return ``ord`` of a matrix: text, None or a number."""
    if value is None or isinstance(value, str):
        return value
    return arguments.real(value, f"{caller}: ord")


def _compute_vector_norm(x: Tensor, axis: Any, order: float, *, keepdims: bool) -> Tensor:
    narrow = dt.real_part(x.dtype)
    wide = kinds.widen_half(x)  # squares may overflow
    if order == 2:
        total = tp.sum(square_moduli(wide), axis=axis, keepdims=keepdims)
        return tp.astype(_take_root(total, 2), narrow, copy=False)
    sizes = tp.abs(wide)
    if math.isinf(order):
        result = _find_extreme(sizes, axis, order, keepdims=keepdims)
    elif order == 0:
        counted = tp.astype(tp.not_equal(sizes, 0), sizes.dtype)
        result = tp.sum(counted, axis=axis, keepdims=keepdims)
    elif order == 1:
        result = tp.sum(sizes, axis=axis, keepdims=keepdims)
    else:
        powers = sizes**order if order > 1 else _raise_sizes(sizes, order)
        result = _take_root(tp.sum(powers, axis=axis, keepdims=keepdims), order)
    return result if result.dtype is narrow else tp.astype(result, narrow)


def _find_extreme(sizes: Tensor, axis: Any, order: float, *, keepdims: bool = False) -> Tensor:
    """Return the largest size, 0 if there is none, or for a negative order the smallest."""
    if order < 0:
        return tp.min(sizes, axis=axis, keepdims=keepdims)
    axes = shapes.normalize_axes(axis, sizes.ndim, "norm: axis")
    empty = any(not sizes.shape[at] for at in axes)
    return (tp.sum if empty else tp.max)(sizes, axis=axis, keepdims=keepdims)


def _raise_sizes(sizes: Tensor, order: float) -> Tensor:
    """Return ``sizes**order`` for an order below 1, with gradient 0 for sizes of 0."""
    nothing = tp.equal(sizes, 0)
    there = tp.where(nothing, 1, sizes) ** order
    return tp.where(nothing, 0 if order > 0 else math.inf, there)


def matrix_norm(
    x: ArrayLike, /, *, keepdims: bool = False, ord: Literal["fro", "nuc"] | float | None = "fro"
) -> Tensor:
    """Return the norm of the matrices in the last two axes.

    Args:
        x: [..., m, n]; integers and booleans become float32.
        keepdims: whether to keep the two axes with length 1.
        ord: "fro": the square root of the sum of squares; "nuc": the sum of the singular values;
            2 and -2: the largest and the smallest of them; 1 and -1: the largest and the smallest
            sum of ``|x|`` over a column; ``inf`` and ``-inf``: over a row.

    Source: the array API standard 2025.12.

    Raises:
        ShapeError: the rank is below 2, or the matrices are empty and the norm is a minimum.
        ArgumentError: an unknown ``ord``.

    Examples:
        >>> x = [[3.0, 0.0], [0.0, -4.0]]
        >>> tp.linalg.matrix_norm(x)
        Tensor(5., dtype=float32, device='cpu')
        >>> round(float(tp.linalg.matrix_norm(x, ord="nuc")), 4)
        7.0
        >>> round(float(tp.linalg.matrix_norm(x, ord=2)), 4)
        4.0
        >>> tp.linalg.matrix_norm([[1.0, 2.0], [3.0, 4.0]], ord=1)  # the largest sum of a column
        Tensor(6., dtype=float32, device='cpu')

    """
    tensor = _read_floating(x, "matrix_norm")
    if tensor.ndim < 2:
        raise ShapeError(f"matrix_norm: x must have at least rank 2, got {tensor.type}")
    keepdims = arguments.flag(keepdims, "matrix_norm: keepdims")
    ord = _read_order(ord, "matrix_norm")
    if ord in ("fro", None):
        return _compute_vector_norm(tensor, (-2, -1), 2.0, keepdims=keepdims)
    if ord in (1, -1, math.inf, -math.inf):
        summed = -2 if ord in (1, -1) else -1
        sums = tp.sum(tp.abs(tensor), axis=summed, keepdims=True)
        return _find_extreme(sums, (-2, -1), ord, keepdims=keepdims)
    if ord in (2, -2, "nuc"):
        values = tp.linalg.svdvals(tensor)
        result = tp.sum(values, axis=-1) if ord == "nuc" else _find_extreme(values, -1, ord)
        return tp.reshape(result, (*result.shape, 1, 1)) if keepdims else result
    raise ArgumentError(
        "matrix_norm: ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got "
        f"{arguments.quoted(ord)}"
    )


@chained
def norm(
    x: ArrayLike,
    /,
    ord: Literal["euclidean", "fro"] | float = "euclidean",
    axis: Axis | None = None,
    *,
    keepdims: bool = False,
) -> Tensor:
    """Return the norm of a vector or a matrix, as in TensorFlow.js.

    Args:
        x: a tensor; without ``axis`` all its elements form one vector.
        ord: for a vector "euclidean" or any number, see ``vector_norm``; for a matrix
            "euclidean" (the same as "fro"), "fro", 1, -1, ``inf`` or ``-inf``, see
            ``matrix_norm``.
        axis: one axis for vectors, or two axes for matrices.
        keepdims: whether to keep the axes with length 1.

    The gradient at a vector of zeros is 0.

    Raises:
        ArgumentError: an unknown ``ord``, or more than two axes.
        ShapeError: an axis is out of range.

    Examples:
        >>> tp.linalg.norm([[1.0, 2.0], [2.0, 4.0]])  # of all elements
        Tensor(5., dtype=float32, device='cpu')
        >>> tp.linalg.norm([[3.0, 4.0], [5.0, 12.0]], axis=1)
        Tensor([ 5., 13.], dtype=float32, device='cpu')
        >>> tp.linalg.norm([[3.0, -4.0], [5.0, 12.0]], 1, axis=(0, 1))  # of a matrix
        Tensor(16., dtype=float32, device='cpu')

    """
    tensor = _read_floating(x, "norm")
    chosen = None if axis is None else shapes.as_ints(axis, "norm: axis")
    if chosen is not None and len(chosen) > 2:
        raise ArgumentError(
            f"norm of {tensor.type}: axis must name one or two axes, got {arguments.quoted(axis)}"
        )
    keepdims = arguments.flag(keepdims, "norm: keepdims")
    order = _read_order(ord, "norm")
    if order in ("euclidean", "fro") and (order == "euclidean" or (chosen and len(chosen) == 2)):
        return _compute_vector_norm(tensor, chosen, 2.0, keepdims=keepdims)
    if chosen is None or len(chosen) == 1:
        return vector_norm(tensor, axis=chosen, keepdims=keepdims, ord=order)
    if order in (1, -1, math.inf, -math.inf):
        rows, columns = (shapes.normalize_axis(at, tensor.ndim, "norm: axis") for at in chosen)
        summed = rows if order in (1, -1) else columns
        sums = tp.sum(tp.abs(tensor), axis=summed, keepdims=True)
        return _find_extreme(sums, (rows, columns), order, keepdims=keepdims)
    raise ArgumentError(
        f"norm of {tensor.type}: ord of a matrix must be 'euclidean', 'fro', 1, -1, inf or -inf, "
        f"got {arguments.quoted(ord)}; linalg.matrix_norm has 2 and 'nuc'"
    )


@chained
def euclidean_norm(x: ArrayLike, /, axis: Axis | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the square root of the sum of squares along one axis, two, or all (None).

    (TensorFlow.js's euclideanNorm.) Errors are those of ``norm``.

    ``x``: numbers of any shape; ``keepdims``: whether reduced axes stay, with length 1.

    Examples:
        >>> tp.linalg.euclidean_norm([[3.0, 4.0], [5.0, 12.0]], axis=1)
        Tensor([ 5., 13.], dtype=float32, device='cpu')
        >>> tp.linalg.euclidean_norm([[1.0, 2.0], [2.0, 4.0]])
        Tensor(5., dtype=float32, device='cpu')

    """
    return norm(x, "euclidean", axis, keepdims=keepdims)
