"""Quantiles along axes: sorted elements, and what lies between two of them."""

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

# From a position between two sorted elements to the fraction of the way that the result lies.
_METHODS: Final[dict[str, Callable[[float], float]]] = {
    "linear": lambda position: position - floor(position),
    "lower": lambda _position: 0.0,
    "higher": lambda position: float(position > floor(position)),
    "midpoint": lambda position: 0.5 if position > floor(position) else 0.0,
    "nearest": lambda position: float(round(position) - floor(position)),  # of halves, the even
}


@chained
def quantile(
    x: Any, q: Any, /, *, axis: Any = None, keepdims: bool = False, method: str = "linear"
) -> Tensor:
    """Return the values below which fractions ``q`` of the elements along ``axis`` lie.

    Of n sorted elements the quantile q stands at position ``q * (n - 1)``, counted from 0.
    Gradients flow to the elements that it is made of, shared as it is between them.

    Args:
        x: real numbers; integers become float32.
        q: a number from 0 to 1, or a sequence of them. They are read: no gradient flows to them.
        axis: None for all axes, an int, or several.
        keepdims: whether the reduced axes stay, with length 1.
        method: what lies between two elements: ``"linear"`` by the distances, ``"midpoint"``
            halfway, or one of the two: ``"lower"``, ``"higher"``, ``"nearest"`` (halfway, the
            one at the even position).

    Returns:
        The quantiles, in the dtype of ``x``: for a sequence q, along a new first axis. NaN where
        there are no elements, or a NaN among them.

    Raises:
        ArgumentError: q outside 0 to 1, another method.
        DTypeError: complex numbers or strings.
        ShapeError: an axis out of range, q of rank 2 or more.

    Source: NumPy's quantile.

    """
    fractions = _fractions(q)
    if method not in list(_METHODS):  # it may have no hash
        known = ", ".join(map(repr, _METHODS))
        raise ArgumentError(f"quantile: method must be one of {known}, got {method!r}")
    return _quantiles(x, fractions, axis, method, "quantile", keepdims=keepdims)


@chained
def median(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the middle of the sorted elements along ``axis``, or halfway between two of them.

    The rest is as for ``quantile`` with q = 0.5. (PyTorch's median is the lower one:
    ``quantile(x, 0.5, method="lower")``.)
    """
    return _quantiles(x, np.asarray(0.5), axis, "linear", "median", keepdims=keepdims)


def _fractions(q: Any) -> np.ndarray[Any, Any]:
    tensor = as_tensor(q, what="quantile: q")
    if tensor.dtype not in dt.REAL:
        raise DTypeError(f"quantile: q is {tensor.type}, but must hold real numbers")
    if tensor.ndim > 1:
        raise ShapeError(f"quantile: q is {tensor.type}, but must be a number or a row of them")
    # A Python number has more digits than float32.
    exact = tensor.numpy() if hasattr(q, "dtype") else np.asarray(q)
    fractions = exact.astype(np.float64)
    if not np.all((fractions >= 0) & (fractions <= 1)):
        raise ArgumentError(f"quantile: q must lie between 0 and 1, got {fractions.tolist()}")
    return fractions


def _quantiles(
    x: Any, q: np.ndarray[Any, Any], axis: Any, method: str, caller: str, *, keepdims: bool
) -> Tensor:
    tensor = floating(x, f"{caller}: x")
    axes = shapes.normalize_axes(axis, tensor.ndim, f"{caller}: axis")
    shape = (*q.shape, *shapes.reduce(tensor.shape, axes, keep_dims=keepdims))
    rows = _rows(tensor, axes)
    length = rows.shape[-1]
    if not length:
        return full(shape, nan, dtype=tensor.dtype)
    ordered = sort(rows, axis=-1)
    found = _between(ordered, q.reshape(-1) * (length - 1), method)
    last = take(ordered, [length - 1], axis=-1)  # a NaN, if there is one
    found = where(isnan(last), last, found)
    return _laid_out(found, q.ndim, shape)


def _rows(x: Tensor, axes: Shape) -> Tensor:
    """Return ``x`` with ``axes`` together as its last one."""
    others = [index for index in range(x.ndim) if index not in axes]
    moved = permute_dims(x, (*others, *axes))
    length = shapes.size(tuple(x.shape[axis] for axis in axes))
    return reshape(moved, (*(x.shape[other] for other in others), length))


def _between(ordered: Tensor, positions: np.ndarray[Any, Any], method: str) -> Tensor:
    """Return what stands at ``positions`` along the last axis."""
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
    # Between two infinities lies one, and beside one, where its weight is 0, there is none.
    return where(equal(lower, upper), lower, astype(between, ordered.dtype))


def _laid_out(found: Tensor, rank: int, shape: Shape) -> Tensor:
    """Return the quantiles, which stand along the last axis, along the first or along none."""
    if rank:
        found = permute_dims(found, (found.ndim - 1, *range(found.ndim - 1)))
    return reshape(found, shape)
