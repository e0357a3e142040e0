"""Resizing along any axes, by any of ONNX's methods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

import numpy as np

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.library.image import resampling_weights
from tensorplug.library.image.resampling_weights import (
    Coordinates,
    Method,
    Resampling,
    Rounding,
    Weights,
)
from tensorplug.plugin import arguments, as_tensor, kinds, shapes
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import Axis, ShapeLike, TensorLike

__all__ = ["resize"]

Policy = Literal["stretch", "not_larger", "not_smaller"]
_UNROLLED: Final = 32  # taps that are gathered one by one; more are gathered at once and summed


class _Axis(NamedTuple):
    """One axis to resize: its number, its new size and the factor before rounding."""

    axis: int
    new: int
    scale: float
    roi: tuple[float, float]


def resize(
    images: TensorLike,
    size: ShapeLike | None = None,
    *,
    scale: float | Sequence[float] | np.ndarray[Any, Any] | None = None,
    axes: Axis | None = None,
    method: Method = "linear",
    antialias: bool = False,
    coordinates: Coordinates = "half_pixel",
    nearest_mode: Rounding = "round_prefer_floor",
    cubic_coefficient: float = -0.75,
    exclude_outside: bool = False,
    roi: Sequence[Sequence[float]] | None = None,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: Policy = "stretch",
) -> Tensor:
    """Return a tensor resized along some axes, each on its own.

    Args:
        images: of any shape. Only "nearest" accepts every dtype, and keeps it. The other methods
            turn integers and booleans into float32.
        size: the new size of each of the ``axes``.
        scale: instead of ``size``: the factor of each of the axes, or one for all. The new size
            is ``floor(scale * old)``.
        axes: by default height and width of [batch, height, width, channels] or [height, width,
            channels].
        method: "nearest"; "linear"; "cubic" (Keys); "lanczos3"; or "area", the mean of what a
            new element covers.
        antialias: whether to widen the method's kernel by the factor by which an axis shrinks.
            Only for "linear", "cubic" and "lanczos3".
        coordinates: the place x of new element i on the old axis, with the factor s:
            "half_pixel": ``(i + 0.5) / s - 0.5``;
            "half_pixel_symmetric": the same, moved so that centres coincide if the new size was
            rounded;
            "pytorch_half_pixel": the same as "half_pixel", but 0 if the new size is 1;
            "align_corners": ``i * (old - 1) / (new - 1)``;
            "asymmetric": ``i / s``;
            "tf_crop_and_resize": from ``roi[0] * (old - 1)`` to ``roi[1] * (old - 1)``.
        nearest_mode: how "nearest" rounds x: "round_prefer_floor" (halves downwards),
            "round_prefer_ceil" (halves upwards), "floor" or "ceil".
        cubic_coefficient: the coefficient a of "cubic"; -0.5 and -0.75 are usual.
        exclude_outside: whether elements beyond the edges have no weight (and the others more).
            If not, the elements at the edges are repeated.
        roi: pairs (start, end), one for each of the axes, where 0 and 1 are the centres of the
            first and the last element; for "tf_crop_and_resize".
        extrapolation_value: the value of new elements that "tf_crop_and_resize" places outside.
        keep_aspect_ratio_policy: "stretch": ``size`` as it is. The others use one factor for all
            axes: "not_larger" the largest for which no axis exceeds ``size``, "not_smaller" the
            smallest for which no axis falls below it. The sizes are rounded, halves upwards;
            the factor is not.

    Returns:
        A tensor with the new sizes. It is differentiable in ``images``.

    Raises:
        ArgumentError: neither or both of ``size`` and ``scale``, an unknown option, or options
            that are mutually exclusive.
        ShapeError: an axis is out of range or given twice, there are not as many sizes as axes,
            or there are no elements to make new ones from.
        DTypeError: ``images`` holds strings and the method is not "nearest".

    Source: ONNX's Resize, version 19. PIL and JAX correspond to
    ``antialias=True, exclude_outside=True``, with a cubic coefficient of -0.5.

    Examples:
        >>> tp.image.resize([[1.0, 3.0]], (4,), axes=(1,))
        Tensor([[1. , 1.5, 2.5, 3. ]], dtype=float32, device='cpu')
        >>> tp.image.resize([[1.0, 3.0, 5.0, 7.0]], (2,), axes=(1,), method="area")
        Tensor([[2., 6.]], dtype=float32, device='cpu')
        >>> tp.image.resize(tp.zeros((8, 32, 32, 3)), scale=0.5, antialias=True).shape
        (8, 16, 16, 3)
        >>> x = tp.zeros((20, 30, 3))
        >>> tp.image.resize(x, (10, 10), keep_aspect_ratio_policy="not_larger").shape
        (7, 10, 3)

    """
    how = Resampling(
        arguments.choice(method, get_args(Method), "resize: method"),
        arguments.flag(antialias, "resize: antialias"),
        arguments.choice(coordinates, get_args(Coordinates), "resize: coordinates"),
        arguments.choice(nearest_mode, resampling_weights.ROUNDINGS, "resize: nearest_mode"),
        arguments.real(cubic_coefficient, "resize: cubic_coefficient"),
        arguments.flag(exclude_outside, "resize: exclude_outside"),
    )
    if how.antialias and method in ("nearest", "area"):
        raise ArgumentError(f"resize: antialias is not possible with method {method!r}")
    policy = arguments.choice(
        keep_aspect_ratio_policy, get_args(Policy), "resize: keep_aspect_ratio_policy"
    )
    x = as_tensor(images, what="resize: images")
    numbers = _read_axes(x, axes)
    steps = _plan(x, numbers, size, scale, policy, _read_roi(roi, len(numbers), coordinates))
    fill = arguments.real(extrapolation_value, "resize: extrapolation_value")
    if method == "nearest":
        return _resample(x, steps, how, fill)
    values = kinds.inexact(x, "resize: images")
    wide = kinds.widen_half(values)
    return tp.astype(_resample(wide, steps, how, fill), values.dtype)


def _resample(x: Tensor, steps: list[_Axis], how: Resampling, fill: float) -> Tensor:
    """Return ``x`` resized, the axis that shrinks most first, so that the others have less."""
    result, outside = x, []
    for step in sorted(steps, key=lambda step: step.scale):
        old = x.shape[step.axis]
        if not old:  # and nothing new either
            continue
        weights = resampling_weights.weigh(old, step.new, step.scale, step.roi, how)
        if weights.inside is not None:
            outside.append(_spread(~weights.inside, step.axis, x.ndim))
        if not weights.keeps(old):
            result = _apply(result, weights, step.axis)
    for mask in outside:
        result = tp.where(tp.asarray(mask), tp.asarray(fill, dtype=result.dtype), result)
    return result


def _apply(x: Tensor, taps: Weights, axis: int) -> Tensor:
    """Return the weighted sums along one axis."""
    if taps.plain:
        return tp.gather(x, tp.asarray(taps.elements[:, 0].copy()), axis=axis)
    weights = taps.weights.astype(dt.real_part(x.dtype).numpy)
    if weights.shape[1] > _UNROLLED:
        picked = tp.gather(x, tp.asarray(taps.elements), axis=axis)
        return tp.sum(_multiply(picked, weights, axis), axis=axis + 1)
    terms = (
        _multiply(tp.gather(x, tp.asarray(elements.copy()), axis=axis), weight, axis)
        for elements, weight in zip(taps.elements.T, weights.T, strict=True)
    )
    return reduce(tp.add, terms)


def _multiply(picked: Tensor, weights: np.ndarray[Any, Any], axis: int) -> Tensor:
    """Return elements times weights; a weight of 0 gives 0 for infinity and NaN too."""
    factors = _spread(weights, axis, picked.ndim)
    term = picked * tp.asarray(factors)
    return term if factors.all() else tp.where(tp.asarray(factors != 0), term, 0)


def _spread(values: np.ndarray[Any, Any], axis: int, rank: int) -> np.ndarray[Any, Any]:
    """Return values along ``axis`` and the following axes in an array of ``rank`` axes."""
    rest = (1,) * (rank - axis - values.ndim)
    return np.ascontiguousarray(values).reshape((1,) * axis + values.shape + rest)


# Arguments ---------------------------------------------------------------------------------


def _read_axes(x: Tensor, axes: Any) -> tuple[int, ...]:
    if axes is not None:
        return shapes.distinct_axes(axes, x.ndim, f"resize of {x.type}: axes")
    if x.ndim not in (3, 4):
        raise ShapeError(
            f"resize: images are {x.type}, but without axes they must have rank 3 or 4: "
            "[batch, height, width, channels] or [height, width, channels]"
        )
    return (x.ndim - 3, x.ndim - 2)


def _read_roi(roi: Any, count: int, coordinates: str) -> list[tuple[float, float]]:
    if coordinates != "tf_crop_and_resize":
        if roi is not None:
            raise ArgumentError(f"resize: roi must be None with coordinates {coordinates!r}")
        return [(0.0, 1.0)] * count
    pairs = list(roi) if isinstance(roi, Sequence) else []
    if len(pairs) != count or not all(
        isinstance(pair, Sequence) and len(pair) == 2 for pair in pairs
    ):
        raise ArgumentError(
            f"resize: roi must be a list of {count} pairs (start, end), one for each axis, "
            f"got {arguments.quoted(roi)}"
        )
    return [
        (arguments.real(start, "resize: roi"), arguments.real(end, "resize: roi"))
        for start, end in pairs
    ]


def _plan(
    x: Tensor,
    axes: tuple[int, ...],
    size: Any,
    scale: Any,
    policy: str,
    roi: list[tuple[float, float]],
) -> list[_Axis]:
    """Return what to do with each axis."""
    if (size is None) == (scale is None):
        raise ArgumentError(
            f"resize: exactly one of size and scale must be given, "
            f"got {arguments.quoted(size)} and {arguments.quoted(scale)}"
        )
    old = [x.shape[axis] for axis in axes]
    if size is None:
        if policy != "stretch":
            raise ArgumentError(f"resize: keep_aspect_ratio_policy {policy!r} needs a size")
        factors = _read_scale(scale, len(axes))
        new = [math.floor(length * factor) for length, factor in zip(old, factors, strict=True)]
    else:
        new = list(shapes.as_shape(size, "resize: size"))
        if len(new) != len(axes):
            raise ShapeError(
                f"resize: size must have {len(axes)} numbers, one for each axis, got "
                f"{arguments.quoted(size)}"
            )
        if policy != "stretch" and all(old):
            ratios = [length / before for length, before in zip(new, old, strict=True)]
            factor = min(ratios) if policy == "not_larger" else max(ratios)
            new = [math.floor(factor * before + 0.5) for before in old]
            factors = [factor] * len(old)
        else:
            factors = [
                length / before if before else 1.0 for length, before in zip(new, old, strict=True)
            ]
    for axis, before, length in zip(axes, old, new, strict=True):
        if length and not before:
            raise ShapeError(f"resize: images are {x.type}, and axis {axis} is empty")
    return [_Axis(*step) for step in zip(axes, new, factors, roi, strict=True)]


def _read_scale(scale: Any, count: int) -> list[float]:
    numbers = scale.tolist() if isinstance(scale, np.ndarray | np.generic) else scale
    listed = list(numbers) if isinstance(numbers, Sequence) else [numbers] * count
    factors = [arguments.real(factor, "resize: scale") for factor in listed]
    if len(factors) != count:
        raise ShapeError(f"resize: scale must have {count} numbers, one for each axis")
    if not all(math.isfinite(factor) and factor > 0 for factor in factors):
        raise ArgumentError(
            f"resize: scale must be positive and finite, got {arguments.quoted(scale)}"
        )
    return factors
