"""Quantiles along axes."""

from __future__ import annotations

from math import floor, nan
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.dispatch.calls import as_tensor, chained
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.ops.comparison import equal, isnan
from tensorplug.ops.creation import full
from tensorplug.ops.elementwise import astype, where
from tensorplug.ops.indexing.indexing import take
from tensorplug.ops.kinds import floating
from tensorplug.ops.movement import permute_dims, reshape
from tensorplug.ops.sorting import sort

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract.shapes import Shape
    from tensorplug.dispatch.tensor import Tensor

__all__ = ["median", "quantile"]

# Map the position between two sorted elements to the weight of the second one.
_METHODS: Final[dict[str, Callable[[float], float]]] = {
    "linear": lambda position: position - floor(position),
    "lower": lambda _position: 0.0,
    "higher": lambda position: float(position > floor(position)),
    "midpoint": lambda position: 0.5 if position > floor(position) else 0.0,
    # Halves go to the even position.
    "nearest": lambda position: float(round(position) - floor(position)),
}


@chained
def quantile(
    x: Any, q: Any, /, *, axis: Any = None, keepdims: bool = False, method: str = "linear"
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

    """
    fractions = _read_fractions(q)
    if method not in list(_METHODS):  # it may be unhashable
        known = ", ".join(map(repr, _METHODS))
        raise ArgumentError(f"quantile: method must be one of {known}, got {method!r}")
    return _compute_quantiles(x, fractions, axis, method, "quantile", keepdims=keepdims)


@chained
def median(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the middle of the sorted elements along ``axis``, or the mean of the middle two.

    It is ``quantile`` with q = 0.5. (PyTorch's median is the lower one:
    ``quantile(x, 0.5, method="lower")``.)
    """
    return _compute_quantiles(x, np.asarray(0.5), axis, "linear", "median", keepdims=keepdims)


def _read_fractions(q: Any) -> np.ndarray[Any, Any]:
    tensor = as_tensor(q, what="quantile: q")
    if tensor.dtype not in dt.REAL:
        raise DTypeError(f"quantile: q must hold real numbers, got {tensor.type}")
    if tensor.ndim > 1:
        raise ShapeError(f"quantile: q must be a number or have rank 1, got {tensor.type}")
    # A Python number has more digits than float32.
    exact = tensor.numpy() if hasattr(q, "dtype") else np.asarray(q)
    fractions = exact.astype(np.float64)
    if not np.all((fractions >= 0) & (fractions <= 1)):
        raise ArgumentError(f"quantile: q must lie between 0 and 1, got {fractions.tolist()}")
    return fractions


def _compute_quantiles(
    x: Any, q: np.ndarray[Any, Any], axis: Any, method: str, caller: str, *, keepdims: bool
) -> Tensor:
    tensor = floating(x, f"{caller}: x")
    axes = shapes.normalize_axes(axis, tensor.ndim, f"{caller}: axis")
    shape = (*q.shape, *shapes.reduce(tensor.shape, axes, keep_dims=keepdims))
    rows = _merge_axes(tensor, axes)
    length = rows.shape[-1]
    if not length:
        return full(shape, nan, dtype=tensor.dtype)
    ordered = sort(rows, axis=-1)
    found = _interpolate(ordered, q.reshape(-1) * (length - 1), method)
    last = take(ordered, [length - 1], axis=-1)  # NaN if any element is NaN
    found = where(isnan(last), last, found)
    return _arrange(found, q.ndim, shape)


def _merge_axes(x: Tensor, axes: Shape) -> Tensor:
    """Return ``x`` with ``axes`` merged into its last axis."""
    others = [index for index in range(x.ndim) if index not in axes]
    moved = permute_dims(x, (*others, *axes))
    length = shapes.size(tuple(x.shape[axis] for axis in axes))
    return reshape(moved, (*(x.shape[other] for other in others), length))


def _interpolate(ordered: Tensor, positions: np.ndarray[Any, Any], method: str) -> Tensor:
    """Return the values at ``positions`` along the last axis."""
    parts = [_METHODS[method](float(position)) for position in positions]
    below = [floor(position) for position in positions]
    low = [place + (part == 1) for place, part in zip(below, parts, strict=True)]
    high = [place + (part > 0) for place, part in zip(below, parts, strict=True)]
    lower = take(ordered, np.asarray(low, np.int32), axis=-1)
    if low == high:
        return lower
    upper = take(ordered, np.asarray(high, np.int32), axis=-1)
    wide = dt.float32 if ordered.dtype is dt.float16 else ordered.dtype
    weight = as_tensor(np.asarray(parts), wide)
    between = astype(lower, wide) * (1.0 - weight) + astype(upper, wide) * weight
    # Two equal infinities give that infinity; an infinity of weight 0 does not count.
    return where(equal(lower, upper), lower, astype(between, ordered.dtype))


def _arrange(found: Tensor, rank: int, shape: Shape) -> Tensor:
    """Return the quantiles, moved from the last axis to the first, in ``shape``."""
    if rank:
        found = permute_dims(found, (found.ndim - 1, *range(found.ndim - 1)))
    return reshape(found, shape)
