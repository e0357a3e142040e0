"""Scans along an axis in log2(n) steps of 1, 2, 4 ... elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.ops.extents import pad, slice

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dispatch.tensor import Tensor


def shift(x: Tensor, axis: int, by: int, fill: float) -> Tensor:
    """Return ``x`` shifted along ``axis`` by ``by`` places, to the front if negative.

    Elements shifted out are lost, and ``fill`` is shifted in.
    """
    length = x.shape[axis]
    count = min(abs(by), length)
    begin, size = [0] * x.ndim, list(x.shape)
    begin[axis], size[axis] = (count if by < 0 else 0), length - count
    widths = [(0, 0)] * x.ndim
    widths[axis] = (0, count) if by < 0 else (count, 0)
    return pad(slice(x, begin, size), widths, fill)


def scan(
    x: Tensor,
    combine: Callable[[Tensor, Tensor], Tensor],
    neutral: float,
    *,
    axis: int,
    exclusive: bool,
    reverse: bool,
) -> Tensor:
    """Return ``y[i] = combine(x[0], ..., x[i])`` for an associative ``combine``.

    ``exclusive`` omits ``x[i]``; ``reverse`` runs from the end. Results are combined in a tree,
    so the error of a sum grows with the logarithm of the number of terms.
    """
    way = -1 if reverse else 1
    result = shift(x, axis, way, neutral) if exclusive else x
    step = 1
    while step < x.shape[axis]:
        result = combine(result, shift(result, axis, way * step, neutral))
        step *= 2
    return result
