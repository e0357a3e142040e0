"""Quantiles along axes."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.plugin import arguments, as_tensor, chained, kinds, shapes
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Shape, Tensor
    from tensorplug.typing import ArrayLike, Axis

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

Array = np.ndarray[Any, Any]

Method: TypeAlias = Literal["linear", "lower", "higher", "midpoint", "nearest"]

# Map positions between two sorted elements to the weights of the second one.
_METHODS: Final[dict[str, Callable[[Array], Array]]] = {
    "linear": lambda positions: positions - np.floor(positions),
    "lower": np.zeros_like,
    "higher": lambda positions: (positions > np.floor(positions)) * 1.0,
    "midpoint": lambda positions: (positions > np.floor(positions)) * 0.5,
    # Halves go to the even position.
    "nearest": lambda positions: np.rint(positions) - np.floor(positions),
}


@chained
def quantile(
    x: ArrayLike,
    q: ArrayLike,
    /,
    axis: Axis | None = None,
    *,
    keepdims: bool = False,
    method: Method = "linear",
) -> Tensor:
    """Return the values below which fractions ``q`` of the elements along ``axis`` lie.

    The quantile q of n sorted elements is at position ``q * (n - 1)``, counted from 0. Its
    gradient flows to the elements that it is interpolated from.

    Args:
        x: real numbers; integers become float32.
        q: a number from 0 to 1, or a sequence of them. It gets no gradient.
        axis: None for all axes, an int, or several.
        keepdims: whether to keep the reduced axes with length 1.
        method: for positions between two elements: ``"linear"`` interpolation, their
            ``"midpoint"``, the ``"lower"``, ``"higher"`` or ``"nearest"`` one (a tie goes
            to the even position).

    Returns:
        The quantiles in the dtype of ``x``, along a new first axis if q is a sequence. NaN if
        there are no elements, or if one is NaN.

    Raises:
        ArgumentError: q is outside [0, 1], or the method is unknown.
        DTypeError: complex numbers or strings.
        ShapeError: an axis is out of range, or q has rank 2 or more.

    Source: NumPy's quantile.

    Examples:
        >>> x = tp.asarray([[1.0, 2.0, 4.0], [3.0, 5.0, 9.0]])
        >>> tp.quantile(x, 0.5, axis=1)
        Tensor([2., 5.], dtype=float32, device='cpu')
        >>> tp.quantile(x, [0, 0.25, 1], axis=1)  # one row for each fraction
        Tensor([[1. , 3. ],
                [1.5, 4. ],
                [4. , 9. ]], dtype=float32, device='cpu')
        >>> tp.quantile([1, 2, 3, 4], 0.5, method="lower")
        Tensor(2., dtype=float32, device='cpu')

    """
    fractions = _read_fractions(q, 1, "quantile")
    return _compute_quantiles(x, fractions, axis, method, "quantile", keepdims=keepdims)


@chained
def percentile(
    x: ArrayLike,
    q: ArrayLike,
    /,
    axis: Axis | None = None,
    *,
    keepdims: bool = False,
    method: Method = "linear",
) -> Tensor:
    """Return the values below which ``q`` percent of the elements along ``axis`` lie.

    It is ``quantile`` of ``q / 100``, with the same arguments and errors.

    ``x``: numbers of any shape; ``keepdims``: whether reduced axes stay, with length 1;
    ``method``: how to interpolate, as for ``quantile``.

    Source: NumPy's percentile.

    Examples:
        >>> tp.percentile([1, 2, 3, 4, 5], 25)
        Tensor(2., dtype=float32, device='cpu')
        >>> tp.percentile([10, 20], [0, 50, 75])
        Tensor([10. , 15. , 17.5], dtype=float32, device='cpu')

    """
    fractions = _read_fractions(q, 100, "percentile")
    return _compute_quantiles(x, fractions, axis, method, "percentile", keepdims=keepdims)


@chained
def nanquantile(
    x: ArrayLike,
    q: ArrayLike,
    /,
    axis: Axis | None = None,
    *,
    keepdims: bool = False,
    method: Method = "linear",
) -> Tensor:
    """Return the quantiles of the elements along ``axis`` that are not NaN; NaN if there are none.

    Arguments and errors are those of ``quantile``.

    ``x``: numbers of any shape; ``q``: fractions from 0 to 1; ``keepdims``: whether reduced axes
    stay, with length 1; ``method``: how to interpolate, as for ``quantile``.

    Source: NumPy's nanquantile.

    Examples:
        >>> tp.nanquantile([1.0, tp.nan, 3.0], 0.5)
        Tensor(2., dtype=float32, device='cpu')
        >>> tp.nanquantile([[1.0, tp.nan], [tp.nan, tp.nan]], 0.5, axis=1)
        Tensor([ 1., nan], dtype=float32, device='cpu')

    """
    fractions = _read_fractions(q, 1, "nanquantile")
    return _skip_missing(x, fractions, axis, method, "nanquantile", keepdims=keepdims)


@chained
def nanpercentile(
    x: ArrayLike,
    q: ArrayLike,
    /,
    axis: Axis | None = None,
    *,
    keepdims: bool = False,
    method: Method = "linear",
) -> Tensor:
    """Return ``nanquantile`` of ``q / 100``, with the same arguments and errors.

    ``x``: numbers of any shape; ``axis``: an axis, several, or None for all; ``keepdims``: whether
    reduced axes stay, with length 1; ``method``: how to interpolate, as for ``quantile``.

    Source: NumPy's nanpercentile.

    Examples:
        >>> tp.nanpercentile([1.0, tp.nan, 3.0, 5.0], [50, 100])
        Tensor([3., 5.], dtype=float32, device='cpu')

    """
    fractions = _read_fractions(q, 100, "nanpercentile")
    return _skip_missing(x, fractions, axis, method, "nanpercentile", keepdims=keepdims)


@chained
def nanmedian(x: ArrayLike, /, axis: Axis | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the median of the elements along ``axis`` that are not NaN; NaN if there are none.

    It is ``nanquantile`` with q = 0.5. Source: NumPy's nanmedian.

    ``x``: numbers of any shape; ``keepdims``: whether reduced axes stay, with length 1.

    Raises:
        DTypeError: complex numbers or strings.
        ShapeError: an axis is out of range or named twice.

    Examples:
        >>> tp.nanmedian([7.0, tp.nan, 1.0, 2.0])
        Tensor(2., dtype=float32, device='cpu')

    """
    return _skip_missing(x, np.asarray(0.5), axis, "linear", "nanmedian", keepdims=keepdims)


@chained
def median(x: ArrayLike, /, axis: Axis | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the middle of the sorted elements along ``axis``, or the mean of the middle two.

    It is ``quantile`` with q = 0.5: integers become float32, and NaN gives NaN. Source: NumPy's
    median. (PyTorch's median is the lower one: ``quantile(x, 0.5, method="lower")``.)

    ``keepdims``: whether reduced axes stay, with length 1.

    Raises:
        DTypeError: complex numbers or strings.
        ShapeError: an axis is out of range or named twice.

    Examples:
        >>> tp.median([7, 1, 2])
        Tensor(2., dtype=float32, device='cpu')
        >>> tp.median([[7, 1, 2, 4], [0, 0, 0, 8]], axis=1)
        Tensor([3., 0.], dtype=float32, device='cpu')

    """
    return _compute_quantiles(x, np.asarray(0.5), axis, "linear", "median", keepdims=keepdims)


def _read_fractions(q: Any, whole: int, caller: str) -> Array:
    """Return ``q``, which counts from 0 to ``whole``, as fractions of 1."""
    tensor = as_tensor(q, what=f"{caller}: q")
    if tensor.dtype not in dt.REAL:
        raise DTypeError(f"{caller}: q must hold real numbers, got {tensor.type}")
    if tensor.ndim > 1:
        raise ShapeError(f"{caller}: q must be a number or have rank 1, got {tensor.type}")
    # A Python number has more digits than float32.
    exact = tensor.numpy() if hasattr(q, "dtype") else np.asarray(q)
    given = exact.astype(np.float64)
    if not np.all((given >= 0) & (given <= whole)):
        raise ArgumentError(f"{caller}: q must lie between 0 and {whole}, got {given.tolist()}")
    return np.asarray(given / whole)


def _prepare_rows(
    x: Any, axis: Any, method: str, caller: str, *, keepdims: bool
) -> tuple[Tensor, Shape]:
    """Return ``x`` with the elements of each quantile along the last axis, and the result's shape.

    Raises:
        ArgumentError, DTypeError, ShapeError: an argument is wrong.

    """
    arguments.choice(method, _METHODS, f"{caller}: method")
    arguments.flag(keepdims, f"{caller}: keepdims")
    tensor = kinds.floating(x, f"{caller}: x")
    axes = shapes.normalize_axes(axis, tensor.ndim, f"{caller}: axis")
    return _merge_axes(tensor, axes), shapes.reduce(tensor.shape, axes, keep_dims=keepdims)


def _compute_quantiles(
    x: Any, q: Array, axis: Any, method: str, caller: str, *, keepdims: bool
) -> Tensor:
    rows, reduced = _prepare_rows(x, axis, method, caller, keepdims=keepdims)
    shape, length = (*q.shape, *reduced), rows.shape[-1]
    if not length:
        return tp.full(shape, nan, dtype=rows.dtype)
    ordered = tp.sort(rows, axis=-1)
    low, high, weights = _place(q.reshape(-1) * (length - 1), method)
    lower = tp.take(ordered, low, axis=-1)
    found = lower
    if (low != high).any():
        upper = tp.take(ordered, high, axis=-1)
        found = _blend(lower, upper, as_tensor(weights, rows.dtype.compute))
    last = tp.take(ordered, [length - 1], axis=-1)  # NaN if any element is NaN
    return _arrange(tp.where(tp.isnan(last), last, found), q.ndim, shape)


def _skip_missing(
    x: Any, q: Array, axis: Any, method: str, caller: str, *, keepdims: bool
) -> Tensor:
    rows, reduced = _prepare_rows(x, axis, method, caller, keepdims=keepdims)
    shape, length = (*q.shape, *reduced), rows.shape[-1]
    if not length:
        return tp.full(shape, nan, dtype=rows.dtype)
    ordered = tp.sort(rows, axis=-1)  # NaN comes last
    present = tp.sum(tp.astype(tp.logical_not(tp.isnan(rows)), dt.int32), axis=-1)
    # The positions depend on the numbers of elements, so there is one row of them per number.
    most = np.maximum(np.arange(length + 1), 1)[:, None] - 1
    low, high, weights = _place(q.reshape(-1) * most, method)
    lower = tp.take_along_axis(ordered, tp.gather(low, present), axis=-1)
    upper = tp.take_along_axis(ordered, tp.gather(high, present), axis=-1)
    weight = tp.gather(as_tensor(weights, rows.dtype.compute), present)
    return _arrange(_blend(lower, upper, weight), q.ndim, shape)


def _merge_axes(x: Tensor, axes: Shape) -> Tensor:
    """Return ``x`` with ``axes`` merged into its last axis."""
    others = [index for index in range(x.ndim) if index not in axes]
    moved = tp.permute_dims(x, (*others, *axes))
    length = shapes.size(tuple(x.shape[axis] for axis in axes))
    return tp.reshape(moved, (*(x.shape[other] for other in others), length))


def _place(positions: Array, method: str) -> tuple[Array, Array, Array]:
    """Return the two elements that each position lies between, and the weight of the second."""
    weights = _METHODS[method](positions)
    below = np.floor(positions)
    return (
        (below + (weights == 1)).astype(np.int32),
        (below + (weights > 0)).astype(np.int32),
        weights,
    )


def _blend(lower: Tensor, upper: Tensor, weight: Tensor) -> Tensor:
    """Return the values between ``lower`` and ``upper``."""
    wide = weight.dtype
    between = tp.astype(lower, wide) * (1.0 - weight) + tp.astype(upper, wide) * weight
    # Two equal infinities give that infinity; an infinity of weight 0 does not count.
    return tp.where(tp.equal(lower, upper), lower, tp.astype(between, lower.dtype))


def _arrange(found: Tensor, rank: int, shape: Shape) -> Tensor:
    """Return the quantiles, moved from the last axis to the first, in ``shape``."""
    if rank:
        found = tp.permute_dims(found, (found.ndim - 1, *range(found.ndim - 1)))
    return tp.reshape(found, shape)
