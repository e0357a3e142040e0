"""Integrals of sampled functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.plugin import arguments, as_tensor, kinds, shapes
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["trapezoid"]


def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Tensor:
    """Return the integral of sampled functions along ``axis`` by the trapezoidal rule.

    It is ``sum((x[i + 1] - x[i]) * (y[i] + y[i + 1]) / 2)``. Gradients flow to y, x and dx.

    Args:
        y: the values; integers and booleans become float32.
        x: the places, in the shape of ``y`` (or one that broadcasts), or of rank 1 with its
            length along ``axis``. By default they are ``dx`` apart.
        dx: the distance between places if there is no ``x``: a number, or a tensor that
            broadcasts with the pairs of values.
        axis: the axis to integrate along.

    Returns:
        A tensor without that axis; 0 for fewer than two values.

    Raises:
        ShapeError: rank 0, an axis out of range, or shapes that do not fit.
        DTypeError: strings.

    Source: NumPy's trapezoid.

    Examples:
        >>> tp.trapezoid([1, 2, 3])
        Tensor(4., dtype=float32, device='cpu')
        >>> tp.trapezoid([1.0, 2.0, 3.0], [0.0, 1.0, 4.0])
        Tensor(9., dtype=float32, device='cpu')
        >>> tp.trapezoid([[0, 1], [2, 3], [4, 5]], dx=0.5, axis=0)
        Tensor([2., 3.], dtype=float32, device='cpu')

    """
    values = kinds.inexact(y, "trapezoid: y")
    if not values.ndim:
        raise ShapeError(f"trapezoid: y must have at least rank 1, got {values.type}")
    at = shapes.normalize_axis(axis, values.ndim, "trapezoid: axis")
    pairs = values.shape[at] - 1
    if pairs < 1:
        return tp.sum(values, axis=at) * 0
    lead = (0,) * at
    size = (*values.shape[:at], pairs)
    means = (tp.slice(values, lead, size) + tp.slice(values, (*lead, 1), size)) / 2
    steps = _read_step(dx) if x is None else _measure_steps(x, values, at)
    return tp.sum(means * steps, axis=at)


def _read_step(dx: Any) -> Any:
    """Return a Python number as it is; it takes the dtype of the values."""
    number = dt.as_number(dx)
    if isinstance(number, bool):
        raise ArgumentError(f"trapezoid: dx must be a number, got {arguments.quoted(dx)}")
    return (
        number if isinstance(number, int | float | complex) else kinds.inexact(dx, "trapezoid: dx")
    )


def _measure_steps(x: Any, values: Tensor, axis: int) -> Tensor:
    places = kinds.inexact(as_tensor(x, what="trapezoid: x"), "trapezoid: x")
    if places.ndim == 1:
        if places.shape[0] != values.shape[axis]:
            raise ShapeError(
                f"trapezoid: x must have length {values.shape[axis]}, that of axis {axis} of y, "
                f"got {places.type}"
            )
        return tp.reshape(tp.diff(places), (-1, *(1,) * (values.ndim - 1 - axis)))
    if places.ndim != values.ndim:
        raise ShapeError(
            f"trapezoid: x must have rank 1 or the rank of y, {values.ndim}, got {places.type}"
        )
    return tp.diff(places, axis=axis)
