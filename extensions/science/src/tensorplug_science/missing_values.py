"""Reductions that ignore NaN, which stands for missing values."""

from __future__ import annotations

from math import inf, nan
from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug.plugin import arguments, chained, default_integers, kinds, shapes
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike, Axis, DTypeLike

__all__ = [
    "nan_to_num",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]


@chained
@default_integers.accumulates(dt.INTEGER | dt.BOOL)
def nansum(
    x: ArrayLike,
    /,
    axis: Axis | None = None,
    *,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the sum of the elements along ``axis`` that are not NaN; 0 if there are none.

    Otherwise it is like ``sum``. Source: NumPy's nansum.

    ``x``: numbers of any shape; ``dtype``: in which to add; ``keepdims``: whether reduced axes
    stay, with length 1.

    Raises:
        DTypeError: strings.
        ShapeError: an axis is out of range or named twice.

    Examples:
        >>> tp.nansum([[1.0, tp.nan], [3.0, 4.0]], axis=0)
        Tensor([4., 4.], dtype=float32, device='cpu')
        >>> tp.nansum([tp.nan])
        Tensor(0., dtype=float32, device='cpu')

    """
    return tp.sum(
        _fill(kinds.numbers(x, "nansum: x"), 0), axis=axis, dtype=dtype, keepdims=keepdims
    )


@chained
@default_integers.accumulates(dt.INTEGER | dt.BOOL)
def nanprod(
    x: ArrayLike,
    /,
    axis: Axis | None = None,
    *,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the product of the elements along ``axis`` that are not NaN; 1 if there are none.

    Otherwise it is like ``prod``. Source: NumPy's nanprod.

    ``x``: numbers of any shape; ``dtype``: in which to multiply; ``keepdims``: whether reduced
    axes stay, with length 1.

    Raises:
        DTypeError: strings.
        ShapeError: an axis is out of range or named twice.

    Examples:
        >>> tp.nanprod([2.0, tp.nan, 3.0])
        Tensor(6., dtype=float32, device='cpu')

    """
    return tp.prod(
        _fill(kinds.numbers(x, "nanprod: x"), 1), axis=axis, dtype=dtype, keepdims=keepdims
    )


@chained
def nanmean(x: ArrayLike, /, axis: Axis | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the mean of the elements along ``axis`` that are not NaN; NaN if there are none.

    Integers and booleans become float32 first. Source: NumPy's nanmean.

    ``x``: numbers of any shape; ``keepdims``: whether reduced axes stay, with length 1.

    Raises:
        DTypeError: strings.

    Examples:
        >>> tp.nanmean([[1.0, tp.nan, 3.0], [tp.nan, tp.nan, tp.nan]], axis=1)
        Tensor([ 2., nan], dtype=float32, device='cpu')

    """
    tensor = kinds.numbers(x, "nanmean: x")
    if tensor.dtype not in dt.INEXACT:
        return tp.mean(tensor, axis=axis, keepdims=keepdims)
    wide = kinds.widen_half(tensor)
    held = tp.astype(tp.logical_not(tp.isnan(tensor)), wide.dtype)
    total = tp.sum(_fill(wide, 0), axis=axis, keepdims=keepdims)
    return tp.astype(total / tp.sum(held, axis=axis, keepdims=keepdims), tensor.dtype)


@chained
def nanvar(
    x: ArrayLike, /, axis: Axis | None = None, *, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Return the variance of the n elements along ``axis`` that are not NaN.

    It is ``sum((x - mean(x))**2) / (n - correction)``, as ``var`` computes it: NaN unless
    ``n - correction`` is positive.

    ``keepdims``: whether reduced axes stay, with length 1.

    Raises:
        DTypeError: complex numbers or strings.
        ArgumentError: ``correction`` is not a number.
        ShapeError: an axis out of range.

    Source: NumPy's nanvar.

    Examples:
        >>> tp.nanvar([1.0, tp.nan, 3.0])
        Tensor(1., dtype=float32, device='cpu')
        >>> tp.nanvar([1.0, tp.nan, 3.0], correction=1)
        Tensor(2., dtype=float32, device='cpu')

    """
    tensor = kinds.floating(x, "nanvar: x")
    return tp.astype(
        _compute_variance(tensor, axis, correction, "nanvar", keepdims=keepdims), tensor.dtype
    )


@chained
def nanstd(
    x: ArrayLike, /, axis: Axis | None = None, *, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Return the standard deviation of the elements along ``axis`` that are not NaN.

    It is the square root of ``nanvar``, with the same arguments. Where it is 0, its gradient is
    0. Source: NumPy's nanstd.

    ``x``: numbers of any shape; ``correction``: what is subtracted from the number of elements, as
    for ``var``; ``keepdims``: whether reduced axes stay, with length 1.

    Raises:
        DTypeError: complex numbers or strings.
        ShapeError: an axis is out of range or named twice.

    Examples:
        >>> tp.nanstd([1.0, tp.nan, 3.0])
        Tensor(1., dtype=float32, device='cpu')

    """
    tensor = kinds.floating(x, "nanstd: x")
    variance = _compute_variance(tensor, axis, correction, "nanstd", keepdims=keepdims)
    still = tp.equal(variance, 0)  # the derivative of the root is infinite there
    root = tp.sqrt(tp.where(still, 1, variance))
    return tp.astype(tp.where(still, variance * 0, root), tensor.dtype)


def _compute_variance(
    x: Tensor, axis: Any, correction: float, caller: str, *, keepdims: bool
) -> Tensor:
    """Return the variance; a narrow float is widened, so that squares do not overflow."""
    correction = arguments.real(dt.as_number(correction), f"{caller}: correction")
    axes = shapes.normalize_axes(axis, x.ndim, f"{caller}: axis")
    wide = kinds.widen_half(x)
    missing = tp.isnan(wide)
    held = tp.astype(tp.logical_not(missing), wide.dtype)
    count = tp.sum(held, axis=axes, keepdims=True)
    centre = tp.sum(tp.where(missing, 0, wide), axis=axes, keepdims=True) / tp.maximum(count, 1)
    away = tp.where(missing, 0, wide - centre)
    squares = tp.sum(away * away, axis=axes, keepdims=keepdims)
    if not keepdims:
        count = tp.reshape(count, squares.shape)
    free = count - correction
    return squares / tp.where(tp.greater(free, 0), free, nan)


@chained
def nanmax(x: ArrayLike, /, axis: Axis | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the largest element along ``axis`` that is not NaN, or NaN if all are.

    ``x``: numbers of any shape; ``keepdims``: whether reduced axes stay, with length 1.

    Source: NumPy's nanmax.

    Raises:
        DTypeError: complex numbers or strings.
        ShapeError: a reduced axis is empty.

    Examples:
        >>> tp.nanmax([[1.0, tp.nan], [tp.nan, tp.nan]], axis=1)
        Tensor([ 1., nan], dtype=float32, device='cpu')

    """
    return _reduce_extreme(x, tp.max, -inf, "nanmax", axis=axis, keepdims=keepdims)


@chained
def nanmin(x: ArrayLike, /, axis: Axis | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the smallest element along ``axis`` that is not NaN, or NaN if all are.

    ``x``: numbers of any shape; ``keepdims``: whether reduced axes stay, with length 1.

    Source: NumPy's nanmin.

    Raises:
        DTypeError: complex numbers or strings.
        ShapeError: a reduced axis is empty.

    Examples:
        >>> tp.nanmin([[1.0, tp.nan], [tp.nan, tp.nan]], axis=1)
        Tensor([ 1., nan], dtype=float32, device='cpu')

    """
    return _reduce_extreme(x, tp.min, inf, "nanmin", axis=axis, keepdims=keepdims)


@chained
def nan_to_num(
    x: ArrayLike, /, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Return ``x`` with finite numbers in place of NaN and infinities.

    Args:
        x: real numbers; integers and booleans stay as they are.
        nan: replaces NaN.
        posinf: replaces infinity; by default the largest number of the dtype.
        neginf: replaces minus infinity; by default the smallest number of the dtype.

    Raises:
        DTypeError: complex numbers or strings.

    Source: NumPy's nan_to_num.

    Examples:
        >>> x = [1.0, tp.nan, tp.inf, -tp.inf]
        >>> tp.nan_to_num(x, nan=-1, posinf=100, neginf=-100)
        Tensor([   1.,   -1.,  100., -100.], dtype=float32, device='cpu')
        >>> tp.nan_to_num(x)[2] == tp.finfo("float32").max
        Tensor(True, dtype=bool, device='cpu')

    """
    tensor = kinds.real(x, "nan_to_num: x")
    if tensor.dtype not in dt.FLOATING:
        return tensor
    largest = tensor.dtype.max
    top, low = (largest if posinf is None else posinf), (-largest if neginf is None else neginf)
    result = tp.where(tensor == inf, top, tp.where(tensor == -inf, low, tensor))
    return tp.where(tp.isnan(tensor), nan, result)


def _reduce_extreme(
    x: Any,
    extreme: Callable[..., Tensor],
    neutral: float,
    caller: str,
    *,
    axis: Any,
    keepdims: bool,
) -> Tensor:
    tensor = kinds.real(x, f"{caller}: x")
    found = extreme(_fill(tensor, neutral), axis=axis, keepdims=keepdims)
    if tensor.dtype not in dt.FLOATING:
        return found
    return tp.where(tp.all(tp.isnan(tensor), axis=axis, keepdims=keepdims), nan, found)


def _fill(x: Tensor, value: float) -> Tensor:
    return tp.where(tp.isnan(x), value, x) if x.dtype in dt.INEXACT else x
