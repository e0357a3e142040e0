"""The bilateral filter as an op: spec, public function, decomposition and gradient rule.

It smooths an image and keeps its edges: a pixel becomes the mean of its neighbours, and those
that differ from it in brightness count little (Tomasi and Manduchi, "Bilateral filtering for gray
and color images", 1998). Importing this module registers nothing; ``register_rules`` does.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug.plugin import ArgumentError, Attribute, KernelSpec, dispatch, inference
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.plugin import InputTypes


def _radius(value: Any, known: InputTypes) -> int:
    """Return the radius; ``known`` has the types of the inputs, so rank is checked here too."""
    if known["x"].rank < 2:
        raise ArgumentError(f"x must have rank 2 or more, [..., height, width], got {known['x']}")
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 100:
        raise ArgumentError(f"must be an integer from 1 to 100, got {value!r}")
    return value


def _sigma(value: Any, _known: InputTypes) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 1e-6 <= value <= 1e6:
        raise ArgumentError(f"must be a number from 1e-6 to 1e6, got {value!r}")
    return float(value)


BILATERAL_FILTER = KernelSpec(
    "BilateralFilter",
    ("x",),
    inference.same,  # the result has x's shape and dtype
    attributes={
        "radius": Attribute(_radius, 4),
        "sigma_space": Attribute(_sigma, 2.0),
        "sigma_range": Attribute(_sigma, 0.2),
    },
    accepts=dt.REAL,
    promote=("x",),
    inexact=True,  # integers become float32 before a kernel sees them
)


def bilateral_filter(
    x: Any, /, *, radius: int = 4, sigma_space: float = 2.0, sigma_range: float = 0.2
) -> tp.Tensor:
    """Return images [..., height, width] smoothed, with their edges kept.

    A neighbour j of pixel i, at most ``radius`` rows and columns away, has the weight
    ``exp(-distance(i, j)**2 / (2 sigma_space**2) - (x[i] - x[j])**2 / (2 sigma_range**2))``. The
    result is the weighted mean of the neighbours inside the image, the pixel itself included.
    """
    return dispatch(
        BILATERAL_FILTER, x, radius=radius, sigma_space=sigma_space, sigma_range=sigma_range
    )


def register_rules() -> None:
    """Register the decomposition and the gradient rule, which serve every backend."""
    tp.register_decomposition(BILATERAL_FILTER, from_ops)
    tp.register_gradient(BILATERAL_FILTER, "x", wrt_x)


def from_ops(x: tp.Tensor, *, radius: int, sigma_space: float, sigma_range: float) -> tp.Tensor:
    """Compute the filter with other ops, for a backend without a kernel."""
    total, weights = tp.zeros_like(x), tp.zeros_like(x)
    for _, there, weight in _neighbours(x, radius, sigma_space, sigma_range):
        total, weights = total + weight * there, weights + weight
    return total / weights


def wrt_x(
    dy: tp.Tensor,
    x: tp.Tensor,
    out: tp.Tensor,
    radius: int,
    sigma_space: float,
    sigma_range: float,
) -> tp.Tensor:
    """Return the cotangent of x.

    A neighbour changes a result in two ways: it is averaged, and its difference from the pixel
    changes its weight. The second has the opposite effect on the pixel itself.
    """
    found = list(_neighbours(x, radius, sigma_space, sigma_range))
    share = dy / tp.add_n([weight for _, _, weight in found])
    gradient = tp.zeros_like(x)
    for offset, there, weight in found:
        averaged = share * weight
        through_weight = averaged * (there - out) * (x - there) / sigma_range**2
        # What belongs to the neighbour at this offset moves there.
        moved = _shifted(averaged + through_weight, (-offset[0], -offset[1]), radius)
        gradient = gradient - through_weight + moved
    return gradient


def _neighbours(
    x: tp.Tensor, radius: int, sigma_space: float, sigma_range: float
) -> Iterator[tuple[tuple[int, int], tp.Tensor, tp.Tensor]]:
    """Yield each offset, the neighbours of all pixels there, and their weights."""
    ones = tp.ones_like(x)
    for down in range(-radius, radius + 1):
        for right in range(-radius, radius + 1):
            there, inside = (_shifted(a, (down, right), radius) for a in (x, ones))
            near = math.exp(-(down**2 + right**2) / (2 * sigma_space**2))
            alike = tp.exp(tp.square(x - there) * (-0.5 / sigma_range**2))
            yield (down, right), there, near * inside * alike


def _shifted(x: tp.Tensor, offset: tuple[int, int], radius: int) -> tp.Tensor:
    """Return for each pixel its neighbour at an offset; 0 where that is outside the image."""
    padded = tp.pad(x, [(0, 0)] * (len(x.shape) - 2) + [(radius, radius)] * 2)
    top, left = radius + offset[0], radius + offset[1]
    height, width = x.shape[-2:]
    return padded[..., top : top + height, left : left + width]
