"""Which old elements of an axis make up each new one, and with which weights, in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from tensorplug.errors import BackendMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Method = Literal["nearest", "linear", "cubic", "lanczos3", "area"]
Coordinates = Literal[
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
]
Rounding = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
ROUNDINGS: Final[dict[Rounding, Callable[[Floats], Any]]] = {
    "round_prefer_floor": lambda at: np.ceil(at - 0.5),
    "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}
_RADII: Final = {"linear": 1, "cubic": 2, "lanczos3": 3}


@dataclass(frozen=True, slots=True)
class Resampling:
    """How elements between elements are computed. The fields are the arguments of ``resize``."""

    method: Method
    antialias: bool
    coordinates: Coordinates
    nearest_mode: Rounding
    cubic_coefficient: float
    exclude_outside: bool


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """For each new element some old ones and their weights, both ``[new, taps]``.

    ``inside``: which new elements lie on the old axis, ``[new]``; None: all.
    """

    elements: NDArray[np.int32]
    weights: Floats
    inside: NDArray[np.bool_] | None = None

    @property
    def plain(self) -> bool:
        """Whether each new element is an old one."""
        return bool(self.elements.shape[1] == 1)

    def keeps(self, old: int) -> bool:
        """Return whether the new elements are the ``old`` ones, in order."""
        first = self.elements[:, 0]
        return self.plain and len(first) == old and bool((first == np.arange(old)).all())


def weigh(old: int, new: int, scale: float, roi: tuple[float, float], how: Resampling) -> Weights:
    """Return the weights of ``new`` elements on an axis of ``old`` >= 1.

    ``scale``: new by old sizes, before rounding. ``roi``: the part of the axis that
    "tf_crop_and_resize" shows, from 0 to 1.
    """
    if not new:
        return Weights(np.zeros((0, 1), np.int32), np.ones((0, 1)))
    at = _compute_places(old, new, scale, roi, how.coordinates)
    inside = None
    if how.coordinates == "tf_crop_and_resize":
        inside = (at >= 0) & (at <= old - 1)
        at = np.where(inside, at, 0)
    if how.method == "nearest":
        nearest = np.clip(ROUNDINGS[how.nearest_mode](at), 0, old - 1).astype(np.int32)
        weights = Weights(nearest[:, None], np.ones((new, 1)))
    else:
        weights = _trim(*_weigh_between(at, old, scale, how))
    return Weights(
        weights.elements, weights.weights, None if inside is None or inside.all() else inside
    )


def _compute_places(
    old: int, new: int, scale: float, roi: tuple[float, float], coordinates: str
) -> Floats:
    """Return each new element's place on the old axis, as ONNX defines it."""
    try:
        steps = np.arange(new, dtype=np.float64)
    except MemoryError as error:
        raise BackendMemoryError(
            f"resize: no room on the host for the places of {new} elements: {error}"
        ) from error
    if coordinates == "align_corners":
        return steps * ((old - 1) / (new - 1)) if new > 1 else steps
    if coordinates == "asymmetric":
        return steps / scale
    if coordinates == "tf_crop_and_resize":
        start, end = roi
        if new == 1:
            return np.full(1, 0.5 * (start + end) * (old - 1))
        return start * (old - 1) + steps * ((end - start) * (old - 1) / (new - 1))
    if coordinates == "pytorch_half_pixel" and new == 1:
        return steps
    centred = (steps + 0.5) / scale - 0.5
    if coordinates == "half_pixel_symmetric":  # the middle of the axis stays in the middle
        centred += old / 2 * (1 - new / (scale * old))
    return centred


def _weigh_between(
    at: Floats, old: int, scale: float, how: Resampling
) -> tuple[NDArray[np.int32], Floats]:
    """Return the elements around each place, and their weights."""
    stretch = max(1 / scale, 1.0) if how.antialias else 1.0
    if how.method == "area":
        low, high = at + 0.5 - 0.5 / scale, at + 0.5 + 0.5 / scale  # of an element i: i, i + 1
        numbers = _count_from(np.floor(low), int(np.ceil(1 / scale)) + 1)
        shared = np.minimum(numbers + 1, high[:, None]) - np.maximum(numbers, low[:, None])
        weights = np.maximum(shared, 0) * scale
    else:
        radius = _RADII[how.method] * stretch
        numbers = _count_from(np.floor(at - radius) + 1, int(np.ceil(2 * radius)))
        distance = np.abs(numbers - at[:, None]) / stretch
        weights = _weigh_distance(distance, how)
    outside = (numbers < 0) | (numbers >= old)
    if how.exclude_outside:
        weights = np.where(outside, 0, weights)
    if how.exclude_outside or how.antialias or how.method == "lanczos3":
        weights = weights / weights.sum(axis=1, keepdims=True)
    return np.clip(numbers, 0, old - 1).astype(np.int32), weights


def _count_from(first: Floats, taps: int) -> Floats:
    return first[:, None] + np.arange(taps)


def _weigh_distance(distance: Floats, how: Resampling) -> Floats:
    """Return the kernel's value at distances from its centre."""
    if how.method == "linear":
        return np.maximum(1 - distance, 0)
    if how.method == "lanczos3":
        return np.where(distance < 3, np.sinc(distance) * np.sinc(distance / 3), 0)
    # R. Keys: Cubic convolution interpolation for digital image processing, 1981.
    a, d = how.cubic_coefficient, distance
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def _trim(elements: NDArray[np.int32], weights: Floats) -> Weights:
    """Return the weights without the taps that are 0 everywhere, or only the old elements."""
    used = np.flatnonzero(weights.any(axis=0))
    if np.all((weights != 0).sum(axis=1) == 1) and np.all(weights.sum(axis=1) == 1):
        one = np.argmax(weights, axis=1)[:, None]
        return Weights(np.take_along_axis(elements, one, 1), np.ones((len(elements), 1)))
    return Weights(elements[:, used], weights[:, used])
