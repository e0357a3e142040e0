"""References for reductions; floating sums come with a bound of eps * log2(n) * sum |terms|."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.case import Bounded
from tensorplug_conformance.corpus import wide, wrap
from tensorplug_conformance.floats import epsilon, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug_conformance.case import Array, Reference

Axes = int | tuple[int, ...] | list[int] | None


def levels(n: int) -> int:
    """Return log2(n), rounded up, and at least 1."""
    return max(1, math.ceil(math.log2(n))) if n > 1 else 1


def normalized(axis: Axes, rank: int) -> tuple[int, ...]:
    """Return the axes counted from the front."""
    if axis is None:
        return tuple(range(rank))
    listed = (axis,) if isinstance(axis, int) else tuple(axis)
    return tuple(sorted(axis % rank for axis in listed))


def rows(x: Array, axes: tuple[int, ...]) -> tuple[Array, tuple[int, ...]]:
    """Return ``x`` as [kept, reduced] and the shape of what is kept."""
    kept = [index for index in range(x.ndim) if index not in axes]
    shape = tuple(x.shape[axis] for axis in kept)
    count = math.prod(x.shape[axis] for axis in axes)
    return x.transpose(*kept, *axes).reshape(math.prod(shape), count), shape


def placed(values: Array, x: Array, axes: tuple[int, ...], *, keep_dims: bool) -> Array:
    """Return one value per kept row, in the shape of the result."""
    kept = tuple(n for at, n in enumerate(x.shape) if at not in axes)
    full = tuple(1 if at in axes else n for at, n in enumerate(x.shape))
    return values.reshape(full if keep_dims else kept)


def total(x: Array, *, axis: Axes = None, keep_dims: bool = False) -> Reference:
    """Sums; booleans are counted in int32, integers wrap."""
    axes = normalized(axis, x.ndim)
    flat, _ = rows(wide(x), axes)
    if kind_of(x.dtype) not in "fc":
        dtype = np.dtype(np.int32) if x.dtype.kind == "b" else x.dtype
        return placed(wrap(flat.sum(axis=1), dtype), x, axes, keep_dims=keep_dims)
    with np.errstate(all="ignore"):
        bound = np.abs(flat).sum(axis=1) * levels(flat.shape[1]) * epsilon(x)
        return Bounded(
            placed(flat.sum(axis=1), x, axes, keep_dims=keep_dims),
            placed(bound, x, axes, keep_dims=keep_dims),
        )


def product(x: Array, *, axis: Axes = None, keep_dims: bool = False) -> Reference:
    """Products; each multiplication may cost half an eps, relative to the result."""
    axes = normalized(axis, x.ndim)
    flat, _ = rows(wide(x), axes)
    if kind_of(x.dtype) not in "fc":
        dtype = np.dtype(np.int32) if x.dtype.kind == "b" else x.dtype
        return placed(wrap(flat.prod(axis=1), dtype), x, axes, keep_dims=keep_dims)
    with np.errstate(all="ignore"):
        value = flat.prod(axis=1)
        factor = (4 if x.dtype.kind == "c" else 1) * max(1, flat.shape[1]) / 2
        bound = np.abs(value) * factor * epsilon(x)
        return Bounded(
            placed(value, x, axes, keep_dims=keep_dims),
            placed(bound, x, axes, keep_dims=keep_dims),
        )


def mean(x: Array, *, axis: Axes = None, keep_dims: bool = False) -> Reference:
    """Sum over count; NaN where there are no elements."""
    axes = normalized(axis, x.ndim)
    count = math.prod(x.shape[axis] for axis in axes)
    summed = total(x, axis=axis, keep_dims=keep_dims)
    if not isinstance(summed, Bounded):
        raise TypeError("the mean is of inexact numbers")
    with np.errstate(all="ignore"):
        value = summed.value / np.longdouble(count)
        one = np.abs(value) * epsilon(x)
        return Bounded(value, summed.bound / np.longdouble(max(count, 1)) + one)


def extreme(largest: bool, name: str) -> Callable[..., Array]:
    """Return the reference of Max or Min: NaN where a row holds one. ``name``: of the axes."""

    def reference(x: Array, *, keep_dims: bool = False, **along: Axes) -> Array:
        axes = normalized(along.get(name), x.ndim)
        flat, _ = rows(x, axes)
        picked = _listed(flat, lambda row: _pick(row.tolist(), largest=largest))
        return placed(picked.astype(x.dtype), x, axes, keep_dims=keep_dims)

    return reference


def _pick(row: list[Any], *, largest: bool) -> Any:
    if any(nans_of(row)):
        return math.nan
    return (max if largest else min)(row)


def quantifier(combine: Callable[[list[bool]], bool]) -> Callable[..., Array]:
    """Return the reference of Any or All."""

    def reference(x: Array, *, axis: Axes = None, keep_dims: bool = False) -> Array:
        axes = normalized(axis, x.ndim)
        flat, _ = rows(x, axes)
        truths = _listed(flat, lambda row: combine(row.tolist())).astype(bool)
        return placed(truths, x, axes, keep_dims=keep_dims)

    return reference


def arg_max(x: Array, *, axis: int = 0) -> Array:
    """Index of the first largest element; the first NaN, if there is one."""
    axes = normalized(axis, x.ndim)
    flat, _ = rows(x, axes)
    indices = _listed(flat, lambda row: _first(row.tolist(), max)).astype(np.int32)
    return placed(indices, x, axes, keep_dims=False)


def arg_min(x: Array, *, axis: int = 0) -> Array:
    """Index of the first smallest element; the first NaN, if there is one."""
    axes = normalized(axis, x.ndim)
    flat, _ = rows(x, axes)
    indices = _listed(flat, lambda row: _first(row.tolist(), min)).astype(np.int32)
    return placed(indices, x, axes, keep_dims=False)


def nans_of(row: list[Any]) -> list[bool]:
    """Return which elements are NaN; the list is empty if none can be."""
    return list(map(math.isnan, row)) if row and isinstance(row[0], float) else []


def _first(row: list[Any], pick: Callable[[list[Any]], Any]) -> int:
    """Return where the first NaN is; without any, where what ``pick`` finds is first."""
    nans = nans_of(row)
    return nans.index(True) if any(nans) else row.index(pick(row))


def _listed(flat: Array, function: Callable[[Array], Any]) -> Array:
    """Return the function of every row, as an array of Python objects."""
    out = np.empty(flat.shape[0], dtype=object)
    for at, row in enumerate(_rows_of(flat)):
        out[at] = function(row)
    return out


def _rows_of(flat: Array) -> Iterator[Array]:
    return iter(flat)
