"""Reference for the coordinates of nonzero elements: a loop over all elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def where(condition: Array) -> Array:
    """The index of each element that is not equal to zero, in row-major order."""
    items = [at for at, value in np.ndenumerate(condition) if value != 0]  # NaN is not
    return np.array(items, dtype=np.int32).reshape(len(items), condition.ndim)
