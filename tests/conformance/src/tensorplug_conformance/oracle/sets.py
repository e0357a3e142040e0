"""References for sets: a dictionary of the slices seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def unique(x: Array, *, axis: int | None = 0) -> tuple[Array, Array]:
    """Number slices in order; all NaN are equal, and so are zeros of both signs."""
    at = (axis or 0) % x.ndim
    slices = np.moveaxis(x, at, 0)
    seen: dict[tuple[Any, ...], int] = {}
    first, numbers = [], []
    for place in range(len(slices)):
        # A slice, since NumPy's scalars of text lose a NUL at their end.
        key = tuple(_key(number) for number in np.ravel(slices[place : place + 1]).tolist())
        if key not in seen:
            seen[key] = len(seen)
            first.append(place)
        numbers.append(seen[key])
    values = np.take(x, np.array(first, dtype=np.intp), axis=at)
    return values, np.array(numbers, dtype=np.int32)


def _key(value: Any) -> Any:
    if isinstance(value, float | complex) and value != value:  # noqa: PLR0124  # NaN
        return "NaN"
    return value
