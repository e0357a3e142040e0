"""Reference for products added to something, with a bound for the rounding of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide, wrap
from tensorplug_conformance.floats import epsilon

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def multiply_add(x: Array, y: Array, z: Array) -> Array | Bounded:
    """The exact value, wrapped for integers; the product may have been rounded."""
    with np.errstate(all="ignore"):
        if x.dtype.kind in "iu":
            exact = x.astype(object) * y.astype(object) + z.astype(object)
            return wrap(np.asarray(exact, object), x.dtype)
        product = wide(x) * wide(y)
        value = product + wide(z)
        size = np.abs(product) * (3 if x.dtype.kind == "c" else 1) + np.abs(value)
        return Bounded(value, np.where(np.isfinite(size), size, 0) * epsilon(x))
