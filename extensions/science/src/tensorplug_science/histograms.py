"""Histograms: counts of numbers in bins."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.plugin import (
    arguments,
    as_tensor,
    default_integers,
    dispatch,
    kinds,
    shapes,
    specs,
)
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike, SupportsArray

__all__ = ["histogram"]


class HistogramResult(NamedTuple):
    """The result of ``histogram``."""

    hist: Tensor
    bin_edges: Tensor


@default_integers.gives_indices(0, unless="weights")
def histogram(
    x: ArrayLike,
    bins: ArrayLike = 10,
    range: Sequence[float | SupportsArray] | np.ndarray[Any, Any] | None = None,
    *,
    density: bool = False,
    weights: ArrayLike | None = None,
) -> HistogramResult:
    """Return the number of elements of ``x`` in each bin, and the edges of the bins.

    Bin i holds the numbers v with ``edges[i] <= v < edges[i + 1]``; the last bin also holds
    those equal to the last edge. NaN and numbers outside the bins are not counted. Gradients
    flow to the weights.

    Args:
        x: real numbers or booleans of any shape.
        bins: the number of bins of equal width, or their edges in ascending order (of rank 1;
            the order is not checked).
        range: (low, high), the ends of bins of equal width. By default the minimum and the
            maximum of ``x``; 0 and 1 if it has no elements. If both are equal, they are moved
            apart by 0.5 each.
        density: whether to return the probability density: counts divided by their sum and by
            the widths of the bins.
        weights: of the shape of ``x``; each element counts as its weight.

    Returns:
        ``hist`` [bins], in int32, or in the dtype of the weights, or floating for densities;
        and ``bin_edges`` [bins + 1]. Edges of equal bins have the dtype of ``x`` if that is
        floating, else float32. They are NaN, and all counts 0, if ``x`` is not finite and there
        is no ``range``.

    Raises:
        ArgumentError: fewer than one bin, or a range that is not finite or descends.
        DTypeError: complex numbers or strings.
        ShapeError: the weights have another shape, or the edges another rank or fewer than two
            elements.

    Source: NumPy's histogram.

    Examples:
        >>> tp.histogram([1, 2, 1], bins=[0, 1, 2, 3]).hist
        Tensor([0, 2, 1], dtype=int32, device='cpu')
        >>> hist, edges = tp.histogram([0.0, 0.5, 3.0, 4.0], bins=4)
        >>> hist
        Tensor([2, 0, 0, 2], dtype=int32, device='cpu')
        >>> edges
        Tensor([0., 1., 2., 3., 4.], dtype=float32, device='cpu')
        >>> density, _ = tp.histogram([0.0, 0.5, 3.0, 9.0], bins=2, range=(0, 4), density=True)
        >>> density.numpy().round(4)
        array([0.3333, 0.1667], dtype=float32)

    """
    arguments.flag(density, "histogram: density")
    given = kinds.real(x, "histogram: x")
    tensor = tp.astype(given, dt.default_int) if given.dtype is dt.bool_ else given
    tensor = tp.reshape(tensor, (tensor.size,))
    edges = _read_edges(bins) if _is_sequence(bins) else _space_edges(tensor, bins, range)
    loads = None if weights is None else _read_weights(weights, given)
    count = edges.shape[0] - 1
    places = tp.searchsorted(edges, tensor, side="right") - 1
    inside = tp.logical_and(
        tp.greater_equal(tensor, tp.gather(edges, 0)), tp.less_equal(tensor, tp.gather(edges, -1))
    )
    # The last edge belongs to the last bin. Numbers from ``count`` on are not counted.
    numbered = tp.where(inside, tp.minimum(places, count - 1), count)
    found = dispatch(specs.BINCOUNT, numbered, loads, size=count)
    return HistogramResult(_divide_by_area(found, edges) if density else found, edges)


def _is_sequence(bins: object) -> bool:
    return isinstance(bins, list | tuple) or bool(getattr(bins, "ndim", 0))


def _read_edges(bins: Any) -> Tensor:
    edges = kinds.real(bins, "histogram: bins")
    if edges.ndim != 1 or edges.shape[0] < 2:
        raise ShapeError(
            f"histogram: bins must be a number, or at least two edges of rank 1, got {edges.type}"
        )
    if isinstance(bins, list | tuple | np.ndarray):  # edges on a device are not read
        numbered = np.asarray(bins)
        if not (numbered[1:] >= numbered[:-1]).all():
            raise ArgumentError(
                f"histogram: the edges of bins must ascend, got {arguments.quoted(bins)}"
            )
    return tp.astype(edges, dt.default_int) if edges.dtype is dt.bool_ else edges


def _space_edges(x: Tensor, bins: Any, ends: Any) -> Tensor:
    """Return the edges of bins of equal width."""
    count = shapes.index(bins, "histogram: bins")
    if count < 1:
        raise ArgumentError(f"histogram: bins must be at least 1, got {count}")
    dtype = x.dtype if x.dtype in dt.FLOATING else dt.default_float
    if ends is not None or not x.size:
        low, high = (0.0, 1.0) if ends is None else _read_ends(ends)
        apart = 0.5 if low == high else 0.0
        return tp.linspace(low - apart, high + apart, count + 1, dtype=dtype)
    lowest, highest = tp.astype(tp.min(x), dtype), tp.astype(tp.max(x), dtype)
    gap = tp.where(tp.equal(lowest, highest), 0.5, 0.0)
    first, last = lowest - tp.astype(gap, dtype), highest + tp.astype(gap, dtype)
    steps = tp.arange(count + 1, dtype=dtype)
    return tp.where(tp.equal(steps, count), last, first + steps * ((last - first) / count))


def _read_ends(ends: Any) -> tuple[float, float]:
    if not isinstance(ends, list | tuple | np.ndarray) or len(ends) != 2:
        raise ArgumentError(
            f"histogram: range must be a pair (low, high), got {arguments.quoted(ends)}"
        )
    low, high = (as_tensor(end, what="histogram: range") for end in ends)
    if low.ndim or high.ndim or {low.dtype, high.dtype} - dt.REAL:
        raise ArgumentError(
            f"histogram: range must be two real numbers, got {arguments.quoted(ends)}"
        )
    # A Python number has more digits than float32.
    pair = tuple(end if isinstance(end, int | float) else end.item() for end in ends)
    if not (isfinite(pair[0]) and isfinite(pair[1]) and pair[0] <= pair[1]):
        raise ArgumentError(
            f"histogram: range must be finite and ascend, got {arguments.quoted(ends)}"
        )
    return float(pair[0]), float(pair[1])


def _read_weights(weights: Any, x: Tensor) -> Tensor:
    loads = kinds.numbers(weights, "histogram: weights")
    if loads.shape != x.shape:
        raise ShapeError(
            f"histogram: weights must have the shape of x, {list(x.shape)}, got {loads.type}"
        )
    flat = tp.reshape(loads, (loads.size,))
    return tp.astype(flat, dt.default_int) if flat.dtype is dt.bool_ else flat


def _divide_by_area(counts: Tensor, edges: Tensor) -> Tensor:
    """Return densities, whose integral is 1; counts in a narrow float would overflow."""
    loads, ends = (tp.astype(x, dt.inexact(x.dtype.compute), copy=False) for x in (counts, edges))
    return loads / tp.diff(ends) / tp.sum(loads)
