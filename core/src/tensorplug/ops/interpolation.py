"""Linear interpolation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.errors import ShapeError
from tensorplug.ops.comparison import equal
from tensorplug.ops.elementwise import maximum, minimum, where
from tensorplug.ops.indexing.indexing import gather
from tensorplug.ops.kinds import floating, inexact
from tensorplug.ops.searching import searchsorted

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
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
    places, at = floating(xp, "interp: xp"), floating(x, "interp: x")
    values = inexact(fp, "interp: fp")
    if places.ndim != 1 or not places.size or values.shape != places.shape:
        raise ShapeError(
            "interp: xp and fp must have rank 1 and the same length of at least 1, got "
            f"{places.type} and {values.type}"
        )
    first, last = gather(places, 0), gather(places, -1)
    # Outside, an infinite distance must not be multiplied by the slope.
    inside = where(at < first, first, where(at > last, last, at))
    result = _interpolate(inside, places, values)
    if left is not None:
        result = where(at < first, left, result)
    return result if right is None else where(at > last, right, result)


def _interpolate(x: Tensor, places: Tensor, values: Tensor) -> Tensor:
    """Return the values for ``x`` between the first and the last point."""
    after = minimum(searchsorted(places, x, side="right"), places.shape[0] - 1)
    before = maximum(after - 1, 0)
    start, end = gather(places, before), gather(places, after)
    low, high = gather(values, before), gather(values, after)
    length = end - start
    behind = x >= end  # at the last point, or a jump to it
    share = (x - start) / where(equal(length, 0), 1.0, length)
    return where(behind, high, low + share * (high - low))
