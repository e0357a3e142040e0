"""References for order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.case import Bounded, Relation
from tensorplug_conformance.oracle.reduction import nans_of

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def top_k(x: Array, *, k: int = 1, sorted: bool = True) -> tuple[Array, Array]:
    """Largest first, the lowest index among equals, NaN before everything."""
    del sorted  # the result is sorted in any case
    values = np.empty((*x.shape[:-1], k), dtype=x.dtype)
    indices = np.empty((*x.shape[:-1], k), dtype=np.int32)
    for at in np.ndindex(x.shape[:-1]):
        row = x[at].tolist()
        order = sorted_indices(row)[:k]
        indices[at] = order
        values[at] = [x[at][index] for index in order]
    return values, indices


def sort(x: Array, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The elements in the order of ``arg_sort``."""
    order = arg_sort(x, axis=axis, descending=descending, stable=stable)
    return np.take_along_axis(x, order, axis)


def arg_sort(x: Array, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Smallest or largest first, the lowest index among equals, NaN as the largest."""
    del stable  # the order is stable in any case
    rows = np.moveaxis(x, axis, -1)
    indices = np.empty(rows.shape, dtype=np.int32)
    for at in np.ndindex(rows.shape[:-1]):
        row = rows[at].tolist()
        indices[at] = sorted_indices(row) if descending else _ascending(row)
    return np.moveaxis(indices, -1, axis)


def _ascending(row: list[Any]) -> list[int]:
    missing, there = _divided(row)
    return sorted(there, key=row.__getitem__) + missing


def sorted_indices(row: list[Any]) -> list[int]:
    """Return the indices of ``row``, largest first; Python's sort keeps the order of equals."""
    missing, there = _divided(row)
    return missing + sorted(there, key=row.__getitem__, reverse=True)


def _divided(row: list[Any]) -> tuple[list[int], list[int]]:
    """Return where ``row`` has NaN, and where not."""
    every = range(len(row))
    nans = nans_of(row)
    if not any(nans):
        return [], list(every)
    return [at for at in every if nans[at]], [at for at in every if not nans[at]]


def arg_partition(x: Array, *, kth: Any, axis: int = -1) -> Relation:
    """A permutation with nothing larger before a position, and nothing smaller after it."""
    ranks = np.moveaxis(_rank(np.moveaxis(x, axis, -1)), -1, axis)
    length = x.shape[axis]
    positions = [position % length for position in np.ravel(kth).tolist()]

    def check(indices: Array) -> Any:
        numbers = np.arange(length).reshape(
            [-1 if at == axis % x.ndim else 1 for at in range(x.ndim)]
        )
        every = np.broadcast_to(numbers, x.shape)
        yield _exact("a permutation", np.sort(indices, axis), every)
        placed = np.moveaxis(np.take_along_axis(ranks, indices.astype(np.int64), axis), axis, -1)
        for k in positions:
            pivot = placed[..., k : k + 1]
            yield _exact(f"larger before {k}", placed[..., :k] > pivot, np.zeros((), bool))
            yield _exact(f"smaller after {k}", placed[..., k:] < pivot, np.zeros((), bool))

    return Relation(check)


def _exact(name: str, value: Array, expected: Array) -> tuple[str, Array, Bounded]:
    numbers = np.broadcast_to(expected, value.shape).astype(np.int64)
    return name, value.astype(np.int64), Bounded(numbers, np.zeros(value.shape))


def _rank(rows: Array) -> Array:
    """Return the rank of each element among the distinct ones of its row; NaN comes last."""
    ranks = np.empty(rows.shape, np.int64)
    for at in np.ndindex(rows.shape[:-1]):
        row = rows[at].tolist()
        rank, last = -1, None
        for index in _ascending(row):
            value = row[index]
            if last is None or (value != last and not (value != value and last != last)):  # noqa: PLR0124  # NaN
                rank += 1
            ranks[(*at, index)] = rank
            last = value
    return ranks
