"""References for matrix products, bounded by eps * (log2(n) + 1) * sum |a| |b|."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide, wrap
from tensorplug_conformance.floats import epsilon, kind_of
from tensorplug_conformance.oracle.reduction import levels

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array, Reference


def batch_mat_mul(
    a: Array, b: Array, *, transpose_a: bool = False, transpose_b: bool = False
) -> Reference:
    """Rows times columns, as a sum of products along a common axis."""
    left = np.swapaxes(wide(a), -1, -2) if transpose_a else wide(a)
    right = np.swapaxes(wide(b), -1, -2) if transpose_b else wide(b)
    products = left[..., :, :, None] * right[..., None, :, :]
    summed = products.sum(axis=-2)
    if kind_of(a.dtype) not in "fc":
        return wrap(np.asarray(summed), a.dtype)
    with np.errstate(all="ignore"):
        sizes = np.abs(products).sum(axis=-2)
        factor = (levels(left.shape[-1]) + 1) * (2 if a.dtype.kind == "c" else 1)
        return Bounded(summed, sizes * factor * epsilon(a))
