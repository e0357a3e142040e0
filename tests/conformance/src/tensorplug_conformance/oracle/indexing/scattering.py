"""References for updates combined by place: each place with all of its updates."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide, wrap
from tensorplug_conformance.floats import epsilon, kind_of
from tensorplug_conformance.oracle.reduction import levels

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array, Reference


def tensor_scatter_reduce(
    tensor: Array, indices: Array, updates: Array, *, reduction: str, include_self: bool = True
) -> Reference:
    """Lists of operands by element; each list is reduced on its own."""
    if indices.ndim == 1 and updates.shape == (len(indices), *tensor.shape[1:]):
        indices = indices[:, None]
    lead = indices.shape[:-1]
    operands: dict[tuple[int, ...], list[Array]] = {}
    sizes = tensor.shape[: indices.shape[-1]]
    count = math.prod(lead)
    named = (
        (indices.astype(np.int64) % np.array(sizes, np.int64)).reshape(count, len(sizes)).tolist()
    )
    rows = updates.reshape(count, *updates.shape[len(lead) :])
    for place, row in zip(map(tuple, named), rows, strict=True):
        operands.setdefault(place, []).append(row)
    out = wide(tensor).copy()
    bound = np.zeros(tensor.shape, np.longdouble)
    inexact = kind_of(tensor.dtype) in "fc"
    with np.errstate(all="ignore"):
        for place, listed in operands.items():
            own = [tensor[place]] if include_self else []
            stacked = wide(np.stack([*own, *listed]))
            out[place] = _reduce(stacked, reduction)
            if inexact:
                bound[place] = _error(stacked, out[place], reduction) * epsilon(tensor)
    if reduction in ("max", "min"):
        return out.astype(tensor.dtype)
    return Bounded(out, bound) if inexact else wrap(out, tensor.dtype)


def _reduce(stacked: Array, reduction: str) -> Any:
    if reduction in ("max", "min"):
        best = np.sort(stacked, axis=0)[-1 if reduction == "max" else 0]
        if kind_of(stacked.dtype) != "f":
            return best
        return np.where(np.isnan(stacked).any(axis=0), np.nan, best)
    return stacked.sum(axis=0) if reduction == "add" else stacked.prod(axis=0)


def _error(stacked: Array, exact: Array, reduction: str) -> Any:
    """Return the error allowed, in units of eps."""
    if reduction == "add":
        return np.abs(stacked).sum(axis=0) * levels(len(stacked))
    if reduction == "multiply":
        return np.abs(exact) * (4 if stacked.dtype.kind == "c" else 1) * len(stacked) / 2
    return 0
