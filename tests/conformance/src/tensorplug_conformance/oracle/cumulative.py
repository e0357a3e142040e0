"""References for running sums and products: element by element, in wide arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide, wrap
from tensorplug_conformance.floats import epsilon, kind_of
from tensorplug_conformance.oracle.reduction import levels

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array, Reference


def running_sum(
    x: Array, *, axis: int = 0, exclusive: bool = False, reverse: bool = False
) -> Reference:
    """Sums, off by at most eps * log2(length) * sum of |terms|; integers wrap."""
    terms = _in_order(x, axis, reverse=reverse)
    value = _accumulated(terms, exclusive=exclusive, product=False)
    if kind_of(x.dtype) not in "fc":
        return wrap(_in_place(value, axis, reverse=reverse), _counted(x))
    with np.errstate(all="ignore"):
        magnitude = _accumulated(np.abs(terms), exclusive=exclusive, product=False)
        bound = magnitude * levels(x.shape[axis]) * epsilon(x)
    return Bounded(
        _in_place(value, axis, reverse=reverse), _in_place(bound, axis, reverse=reverse)
    )


def running_product(
    x: Array, *, axis: int = 0, exclusive: bool = False, reverse: bool = False
) -> Reference:
    """Products; each multiplication may cost half an eps, relative to the result."""
    terms = _in_order(x, axis, reverse=reverse)
    value = _accumulated(terms, exclusive=exclusive, product=True)
    if kind_of(x.dtype) not in "fc":
        return wrap(_in_place(value, axis, reverse=reverse), _counted(x))
    with np.errstate(all="ignore"):
        factor = (4 if x.dtype.kind == "c" else 1) * max(1, x.shape[axis]) / 2
        bound = np.abs(value) * factor * epsilon(x)
    return Bounded(
        _in_place(value, axis, reverse=reverse), _in_place(bound, axis, reverse=reverse)
    )


def _counted(x: Array) -> np.dtype[Any]:
    return np.dtype(np.int32) if x.dtype.kind == "b" else x.dtype


def _in_order(x: Array, axis: int, *, reverse: bool) -> Array:
    """Return the terms, wide, with the axis first and in the order in which they are taken."""
    first = np.moveaxis(wide(x), axis, 0)
    return first[::-1] if reverse else first


def _in_place(values: Array, axis: int, *, reverse: bool) -> Array:
    return np.moveaxis(values[::-1] if reverse else values, 0, axis)


def _accumulated(terms: Array, *, exclusive: bool, product: bool) -> Array:
    result = np.empty_like(terms)
    total: Any = np.full(terms.shape[1:], 1 if product else 0, dtype=terms.dtype)
    with np.errstate(all="ignore"):
        for at in range(len(terms)):
            if exclusive:
                result[at] = total
            total = total * terms[at] if product else total + terms[at]
            if not exclusive:
                result[at] = total
    return result
