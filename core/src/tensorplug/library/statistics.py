"""Statistics along axes. ``axis`` is None for all axes, an int, or a sequence."""

from __future__ import annotations

from math import inf, nan
from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug.plugin import arguments, chained, kinds, shapes
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike, Axis

__all__ = [
    "log_sum_exp",
    "std",
    "var",
]


@chained
def var(
    x: ArrayLike, /, axis: Axis | None = None, *, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Return the variance ``sum((x - mean(x))**2) / (n - correction)`` along ``axis``.

    Args:
        x: real numbers; integers and booleans become float32. float16 is computed in float32.
        axis: the axes of the n elements.
        correction: 0 for the variance of x, 1 for an estimate of the population's.
        keepdims: whether to keep the reduced axes with length 1.

    Returns:
        The variance; NaN unless ``n - correction`` is positive.

    Raises:
        DTypeError: complex numbers or strings.
        ArgumentError: ``correction`` is not a number.
        ShapeError: an axis out of range.

    Source: the array API standard.

    Examples:
        >>> x = [[1.0, 3.0], [2.0, 8.0]]
        >>> tp.var(x, axis=1)
        Tensor([1., 9.], dtype=float32, device='cpu')
        >>> tp.var(x, axis=1, correction=1)
        Tensor([ 2., 18.], dtype=float32, device='cpu')
        >>> tp.var(5, correction=1)
        Tensor(nan, dtype=float32, device='cpu')

    """
    tensor = kinds.floating(x, "var: x")
    return tp.astype(
        _compute_variance(tensor, axis, correction, "var", keepdims=keepdims), tensor.dtype
    )


@chained
def std(
    x: ArrayLike, /, axis: Axis | None = None, *, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Return the standard deviation along ``axis``: the square root of ``var``.

    Where it is 0, its gradient is 0. Otherwise it is like ``var``. Source: the array API standard.

    ``x``: numbers of any shape; ``correction``: what is subtracted from the number of elements, as
    for ``var``; ``keepdims``: whether reduced axes stay, with length 1.

    Raises:
        DTypeError: complex numbers or strings.
        ShapeError: an axis is out of range or named twice.

    Examples:
        >>> x = tp.asarray([[1.0, 3.0], [2.0, 8.0]])
        >>> tp.std(x, axis=1)
        Tensor([1., 3.], dtype=float32, device='cpu')
        >>> (x - x.mean(axis=0)) / x.std(axis=0)
        Tensor([[-1., -1.],
                [ 1.,  1.]], dtype=float32, device='cpu')

    """
    tensor = kinds.floating(x, "std: x")
    variance = _compute_variance(tensor, axis, correction, "std", keepdims=keepdims)
    return tp.astype(_root(variance), tensor.dtype)


def _root(variance: Tensor) -> Tensor:
    """Return the square root, with gradient 0 at 0."""
    # The derivative of the root at 0 is infinite, and infinity times 0 is NaN.
    still = tp.equal(variance, 0)
    return tp.where(still, variance * 0, tp.sqrt(tp.where(still, 1, variance)))


def _compute_variance(
    x: Tensor, axis: Any, correction: float, caller: str, *, keepdims: bool
) -> Tensor:
    """Return the variance; a narrow float is widened, so that squares do not overflow."""
    correction = arguments.real(dt.as_number(correction), f"{caller}: correction")
    axes = shapes.normalize_axes(axis, x.ndim, f"{caller}: axis")
    wide = kinds.widen_half(x)
    away = wide - tp.mean(wide, axis=axes, keepdims=True)
    squares = away * away
    if not correction:
        return tp.mean(squares, axis=axes, keepdims=keepdims)
    count = shapes.size(tuple(x.shape[at] for at in axes)) - correction
    return tp.sum(squares, axis=axes, keepdims=keepdims) / (count if count > 0 else nan)


@chained
def log_sum_exp(x: ArrayLike, /, axis: Axis | None = None, *, keepdims: bool = False) -> Tensor:
    """Return ``log(sum(exp(x)))`` along ``axis``, without overflow.

    It is ``m + log(sum(exp(x - m)))`` for the largest element m. Integers become float32. Rows
    of -infinity and empty rows give -infinity; a NaN gives NaN. The gradient is
    ``softmax(x)``; where the result is infinite, the elements that equal it share it.
    (TensorFlow.js's logSumExp.)

    ``keepdims``: whether reduced axes stay, with length 1.

    Raises:
        DTypeError: complex numbers or strings.
        ShapeError: an axis out of range.

    Examples:
        >>> tp.log_sum_exp([[0.0, 0.0], [-tp.inf, -tp.inf]], axis=1).numpy().round(4)
        array([0.6931,   -inf], dtype=float32)
        >>> tp.log_sum_exp([1000.0, 0.0])  # exp(1000) overflows
        Tensor(1000., dtype=float32, device='cpu')

    """
    tensor = kinds.floating(x, "log_sum_exp: x")
    axes = shapes.normalize_axes(axis, tensor.ndim, "log_sum_exp: axis")
    keep = arguments.flag(keepdims, "log_sum_exp: keepdims")
    kept = shapes.reduce(tensor.shape, axes, keep_dims=True)
    shape = shapes.reduce(tensor.shape, axes, keep_dims=keep)
    if tensor.size:
        largest = tp.max(tensor, axis=axes, keepdims=True)
    else:
        largest = tp.full(kept, -inf, dtype=tensor.dtype)
    # inf - inf is NaN. Where the result is infinite it is the maximum, whose slope equals share;
    # elsewhere the slope is that of the sum alone.
    infinite = tp.isinf(largest)
    shift = tp.stop_gradient(tp.maximum(largest, -tensor.dtype.max))
    finite = tp.clip_by_value(tensor, -inf, tensor.dtype.max)
    sums = tp.sum(tp.exp(finite - shift), axis=axes, keepdims=True)
    result = tp.where(infinite, largest, tp.log(tp.where(infinite, 1, sums)) + shift)
    return result if result.shape == shape else tp.reshape(result, shape)
