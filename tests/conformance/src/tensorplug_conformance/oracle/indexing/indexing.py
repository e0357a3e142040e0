"""References for gathering and scattering: loops over every index."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide, wrap
from tensorplug_conformance.floats import epsilon, kind_of
from tensorplug_conformance.oracle.places import everywhere, taken
from tensorplug_conformance.oracle.reduction import levels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_conformance.case import Array, Reference


def gather(x: Array, indices: Array, *, axis: int = 0, batch_dims: int = 0) -> Array:
    """``out[b, p, i, s] = x[b, p, indices[b, i], s]`` for batch b, prefix p and suffix s."""
    at = axis % x.ndim
    batches = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    shape = (*x.shape[:at], *indices.shape[batches:], *x.shape[at + 1 :])
    inner = indices.ndim - batches
    to = everywhere(shape)
    picked = indices[(*to[:batches], *to[at : at + inner])] if indices.ndim else indices
    return taken(x, [*to[:at], picked.astype(np.int64), *to[at + inner :]], shape)


def gather_nd(params: Array, indices: Array) -> Array:
    """The slices of ``params`` at each row of the indices."""
    lead = indices.shape[:-1]
    rest = params.shape[indices.shape[-1] :]
    places = np.moveaxis(indices.astype(np.int64), -1, 0)
    return taken(params, [*places], (*lead, *rest))


def tensor_scatter_update(tensor: Array, indices: Array, updates: Array) -> Array:
    """A copy, in which one update after the other is written."""
    out = tensor.copy()
    rows = indices
    if indices.ndim == 1 and updates.shape == (len(indices), *tensor.shape[1:]):
        rows = indices[:, None]
    for at in np.ndindex(rows.shape[:-1]):
        out[tuple(int(row) for row in rows[at])] = updates[at]
    return out


def sparse_to_dense(
    sparse_indices: Array,
    sparse_values: Array,
    default_value: Array | None,
    *,
    output_shape: Sequence[int],
) -> Array:
    """A constant array, in which one value after the other is written."""
    out = np.zeros(tuple(output_shape), dtype=sparse_values.dtype)
    if default_value is not None:
        out[...] = default_value
    rows = sparse_indices.reshape(-1, len(output_shape))
    for row, value in zip(rows, np.broadcast_to(sparse_values, (len(rows),)), strict=True):
        out[tuple(int(number) for number in row)] = value
    return out


def scatter_nd(indices: Array, updates: Array, *, shape: Sequence[int]) -> Reference:
    """Zeros, to which every update is added where its index says."""
    if indices.ndim == 1 and updates.shape == (len(indices), *shape[1:]):
        indices = indices[:, None]
    depth = indices.shape[-1]
    flat_indices = indices.reshape(math.prod(indices.shape[:-1]), depth)
    tail = tuple(shape[depth:])
    flat_updates = wide(updates).reshape(len(flat_indices), *tail)
    out = np.zeros(tuple(shape), dtype=flat_updates.dtype)
    sizes = np.zeros(tuple(shape), dtype=np.longdouble)
    counts = np.zeros(tuple(shape), dtype=int)
    # An axis before all others, of one place: there may be no axis that an index names.
    where = (np.zeros(len(flat_indices), int), *flat_indices.T)
    np.add.at(out[None], where, flat_updates)
    if kind_of(updates.dtype) not in "fc":
        return wrap(out, updates.dtype)
    np.add.at(sizes[None], where, np.abs(flat_updates))
    np.add.at(counts[None], where, 1)
    rounds = levels(int(counts.max(initial=1)))
    return Bounded(out, sizes * rounds * epsilon(updates))


def one_hot(
    indices: Array,
    *,
    depth: int,
    on_value: Any = 1,
    off_value: Any = 0,
    dtype: str = "float32",
) -> Array:
    """``on_value`` where the last axis equals the index."""
    out = np.full((*indices.shape, depth), off_value).astype(dtype)
    for at in np.ndindex(indices.shape):
        if 0 <= int(indices[at]) < depth:
            out[(*at, int(indices[at]))] = on_value
    return out if kind_of(out.dtype) not in "fc" else wide(out)
