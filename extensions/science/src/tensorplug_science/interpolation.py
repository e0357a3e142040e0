"""Linear interpolation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorplug as tp
from tensorplug.errors import ShapeError
from tensorplug.plugin import kinds

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["interp"]


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    /,
    *,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
) -> Tensor:
    """Return the piecewise linear function through the points ``(xp, fp)`` at each ``x``.

    Gradients flow to x, xp and fp. If points share their ``xp``, the function jumps, and there
    it has the value of the last of them.

    Args:
        x: real numbers of any shape; integers become float32.
        xp: the points, of rank 1, finite and ascending (this is not checked).
        fp: their values, of the same length, real or complex.
        left: the value below ``xp[0]``; ``fp[0]`` by default.
        right: the value above ``xp[-1]``; ``fp[-1]`` by default.

    Returns:
        Values of the shape of ``x``; NaN at NaN.

    Raises:
        ShapeError: xp does not have rank 1 or is empty, or fp differs in shape.
        DTypeError: x or xp is complex, or an argument holds strings.

    Source: NumPy's interp.

    Examples:
        >>> places, values = [0.0, 1.0, 3.0], [0.0, 10.0, 30.0]
        >>> tp.interp([0.5, 1.0, 2.5], places, values)
        Tensor([ 5., 10., 25.], dtype=float32, device='cpu')
        >>> tp.interp([-1.0, 5.0], places, values)
        Tensor([ 0., 30.], dtype=float32, device='cpu')
        >>> tp.interp([-1.0, 5.0], places, values, left=-1.0, right=np.nan)
        Tensor([-1., nan], dtype=float32, device='cpu')

    """
    places, at = kinds.floating(xp, "interp: xp"), kinds.floating(x, "interp: x")
    values = kinds.inexact(fp, "interp: fp")
    if places.ndim != 1 or not places.size or values.shape != places.shape:
        raise ShapeError(
            "interp: xp and fp must have rank 1 and the same length of at least 1, got "
            f"{places.type} and {values.type}"
        )
    first, last = tp.gather(places, 0), tp.gather(places, -1)
    # Outside, an infinite distance must not be multiplied by the slope.
    inside = tp.where(at < first, first, tp.where(at > last, last, at))
    result = _interpolate(inside, places, values)
    if left is not None:
        result = tp.where(at < first, left, result)
    return result if right is None else tp.where(at > last, right, result)


def _interpolate(x: Tensor, places: Tensor, values: Tensor) -> Tensor:
    """Return the values for ``x`` between the first and the last point."""
    after = tp.minimum(tp.searchsorted(places, x, side="right"), places.shape[0] - 1)
    before = tp.maximum(after - 1, 0)
    start, end = tp.gather(places, before), tp.gather(places, after)
    low, high = tp.gather(values, before), tp.gather(values, after)
    length = end - start
    behind = x >= end  # at the last point, or a jump to it
    share = (x - start) / tp.where(tp.equal(length, 0), 1.0, length)
    return tp.where(behind, high, low + share * (high - low))
