"""References for Einstein sums, bounded by eps * (log2(n) + operands) * sum |product of terms|.

NumPy's loop over all labels at once, in wide arithmetic: it joins no operands in pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide, wrap
from tensorplug_conformance.floats import epsilon, kind_of
from tensorplug_conformance.oracle.reduction import levels

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array, Reference


def einsum(xs: list[Array], *, equation: str) -> Reference:
    """Sum the products over every label that the result lacks."""
    exact = [wide(x) for x in xs]
    summed = np.asarray(np.einsum(equation, *exact))
    if kind_of(xs[0].dtype) not in "fc":
        return wrap(summed, xs[0].dtype)
    with np.errstate(all="ignore"):
        sizes = np.asarray(np.einsum(equation, *(np.abs(x) for x in exact)))
        count = np.asarray(np.einsum(equation, *(np.ones(x.shape) for x in xs)))
        factor = levels(int(np.max(count, initial=1))) + len(xs)
        return Bounded(
            summed, sizes * (2 if xs[0].dtype.kind == "c" else 1) * factor * epsilon(xs[0])
        )
