"""Polynomials, fitted to points and evaluated. Coefficients of high powers come first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, overload

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.plugin import arguments, kinds, shapes
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["polyfit", "polyval"]


class PolyfitResult(NamedTuple):
    """The result of ``polyfit`` with ``full``."""

    coefficients: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor
    rcond: float


@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    *,
    full: Literal[False] = False,
    w: ArrayLike | None = None,
) -> Tensor: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    *,
    full: Literal[True],
    w: ArrayLike | None = None,
) -> PolyfitResult: ...
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    *,
    full: bool = False,
    w: ArrayLike | None = None,
) -> Tensor | PolyfitResult:
    """Return the polynomial of degree ``deg`` through points, in the sense of least squares.

    It minimizes ``sum((w * (polyval(coefficients, x) - y))**2)``. Gradients flow to x, y and w.

    Args:
        x: [m], the places; integers become float32, which suffices for low degrees. Take float64
            for others.
        y: [m], or [m, k] for k polynomials at the same places.
        deg: the degree, at least 0 and below m.
        rcond: singular values of the scaled powers of x up to ``rcond`` times the largest count
            as 0. By default ``m * eps`` of the dtype.
        full: whether to return more than the coefficients.
        w: [m], real numbers that multiply the distances, not their squares; by default all are 1.

    Returns:
        The coefficients [deg + 1] or [deg + 1, k], that of ``x**deg`` first; with ``full``, a
        named tuple of them, ``residuals`` [k] ([1] for one polynomial), the minima of the sum,
        and of the scaled powers the ``rank``, the ``singular_values`` and ``rcond``. If places
        coincide, so that the rank is below ``deg + 1``, the solution is that of least norm.
        (NumPy warns then.)

    Raises:
        ShapeError: shapes do not fit, or there are too few points for the degree.
        ArgumentError: ``deg`` is not an integer from 0 on, or ``rcond`` is not a number.
        DTypeError: strings, or complex weights.
        LinAlgError: the algorithm does not converge, as with NaN or infinities.

    Source: NumPy's polyfit, without ``cov``.

    Examples:
        >>> x = tp.asarray([0.0, 1.0, 2.0, 3.0])
        >>> tp.polyfit(x, x**2 - 2.0 * x + 5.0, 2).numpy().round(3)
        array([ 1., -2.,  5.], dtype=float32)
        >>> tp.polyfit(x, [1.0, 3.0, 5.0, 100.0], 1, w=[1.0, 1.0, 1.0, 0.0]).numpy().round(3)
        array([2., 1.], dtype=float32)
        >>> tp.polyfit(x, [1.0, 3.0, 5.0, 7.0], 1, full=True).rank
        Tensor(2, dtype=int32, device='cpu')

    """
    places, values = kinds.inexact(x, "polyfit: x"), kinds.inexact(y, "polyfit: y")
    weights = None if w is None else kinds.floating(w, "polyfit: w")
    degree = shapes.index(deg, "polyfit: deg")
    full = arguments.flag(full, "polyfit: full")
    limit = None if rcond is None else arguments.real(rcond, "polyfit: rcond")
    _check_points(places, values, weights, degree)
    given = [tensor for tensor in (places, values, weights) if tensor is not None]
    dtype = dt.promote(tensor.dtype for tensor in given)
    places, values, *weighed = (tp.astype(tensor, dtype.compute, copy=False) for tensor in given)
    powers = _list_powers(places, degree)
    for weight in weighed:
        powers = powers * tp.expand_dims(weight, axis=1)
        values = values * (weight if values.ndim == 1 else tp.expand_dims(weight, axis=1))
    # Columns of length 1 make the rank that of the polynomials, whatever the unit of x.
    lengths = tp.linalg.vector_norm(powers, axis=0)
    scale = tp.astype(tp.where(tp.equal(lengths, 0), 1.0, lengths), powers.dtype, copy=False)
    if limit is None:
        limit = powers.shape[0] * lengths.dtype.eps
    found = tp.linalg.lstsq(powers / scale, values, rcond=limit)
    scaled = found.x / (scale if values.ndim == 1 else tp.expand_dims(scale, axis=1))
    coefficients = tp.astype(scaled, dtype, copy=False)
    if not full:
        return coefficients
    residuals = tp.astype(found.residuals, dt.real_part(dtype), copy=False)
    return PolyfitResult(coefficients, residuals, found.rank, found.s, limit)


def _check_points(x: Tensor, y: Tensor, w: Tensor | None, degree: int) -> None:
    if x.ndim != 1:
        raise ShapeError(f"polyfit: x must have rank 1, got {x.type}")
    count = x.shape[0]
    if y.ndim not in (1, 2) or y.shape[0] != count:
        raise ShapeError(f"polyfit: y must have the shape [{count}] or [{count}, k], got {y.type}")
    if w is not None and w.shape != x.shape:
        raise ShapeError(f"polyfit: w must have the shape of x, [{count}], got {w.type}")
    if degree < 0:
        raise ArgumentError(f"polyfit: deg must be at least 0, got {degree}")
    if count <= degree:
        raise ShapeError(
            f"polyfit: a polynomial of degree {degree} needs at least {degree + 1} points, "
            f"got x of {x.type}"
        )


def _list_powers(x: Tensor, degree: int) -> Tensor:
    """Return ``x**degree`` to ``x**0`` as columns."""
    columns = [tp.ones_like(x)]
    for _ in range(degree):
        columns.append(columns[-1] * x)
    return tp.stack(columns[::-1], axis=1)


def polyval(p: ArrayLike, x: ArrayLike) -> Tensor:
    """Return ``p[0] * x**(n - 1) + ... + p[n - 1]`` elementwise, by Horner's scheme.

    Args:
        p: [n, ...], the coefficients, that of the highest power first. Axes after the first
            broadcast with ``x``: those of k polynomials are [n, k]. Without coefficients the
            result is 0.
        x: the places, of any shape.

    Returns:
        A tensor of the broadcast shape, in the dtype of ``p * x``.

    Raises:
        ShapeError: ``p`` is a scalar, or the shapes do not broadcast.
        DTypeError: only booleans, or strings.

    Source: NumPy's polyval.

    Examples:
        >>> tp.polyval([1.0, -2.0, 5.0], [0.0, 1.0, 4.0])  # x**2 - 2 x + 5
        Tensor([ 5.,  4., 13.], dtype=float32, device='cpu')
        >>> tp.polyval([3, 0, 1], 5)
        Tensor(76, dtype=int32, device='cpu')

    """
    coefficients, places = kinds.operands(p, x, "polyval: p", "polyval: x")
    kinds.numbers(coefficients, "polyval: p")
    kinds.numbers(places, "polyval: x")
    if not coefficients.ndim:
        raise ShapeError(f"polyval: p must have at least rank 1, got {coefficients.type}")
    dtype = dt.promote((coefficients.dtype, places.dtype))
    if dtype not in dt.NUMERIC:
        raise DTypeError(
            f"polyval: p and x must hold numbers, got {coefficients.type} and {places.type}"
        )
    try:
        shape = shapes.broadcast(coefficients.shape[1:], places.shape)
    except ShapeError as error:
        raise ShapeError(f"polyval of {coefficients.type} and {places.type}: {error}") from None
    if not coefficients.shape[0]:
        return tp.zeros(shape, dtype=dtype)
    at = kinds.widen_half(tp.astype(places, dtype, copy=False))
    result, *rest = tp.unstack(tp.astype(coefficients, at.dtype, copy=False))
    for coefficient in rest:
        result = tp.multiply_add(result, at, coefficient)
    return tp.astype(tp.broadcast_to(result, shape), dtype, copy=False)
