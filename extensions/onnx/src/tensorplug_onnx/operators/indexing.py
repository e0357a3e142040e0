"""Operators that take elements at indices, or put them there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

import tensorplug as tp
from tensorplug_onnx.operators.movement import normal_axis
from tensorplug_onnx.rules import rule

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from tensorplug_onnx.values import Host


@rule("Gather")
def gather(x: Any, indices: Any, *, xp: ModuleType, axis: int = 0) -> Any:
    at = normal_axis(axis, x.ndim)
    if xp is np:
        return x[(*[slice(None)] * at, indices, ...)]
    return xp.gather(x, indices, at)


@rule("GatherElements")
def gather_elements(x: Any, indices: Any, *, xp: ModuleType, axis: int = 0) -> Any:
    at = normal_axis(axis, x.ndim)
    if _covers(indices.shape, x.shape, at):
        return xp.take_along_axis(x, indices, at)
    corner = [slice(None) if axis == at else slice(n) for axis, n in enumerate(indices.shape)]
    return xp.take_along_axis(x[tuple(corner)], indices, at)


def _covers(shape: Sequence[int], whole: Sequence[int], axis: int) -> bool:
    """Return whether indices have the sizes of a tensor on all axes but one.

    Raises:
        ValueError: they have larger ones, or another rank.

    """
    others = [at for at in range(len(whole)) if at != axis]
    if len(shape) != len(whole) or any(shape[at] > whole[at] for at in others):
        raise ValueError(
            f"indices of shape {list(shape)} do not fit to shape {list(whole)}: only on axis "
            f"{axis} they can have a larger size"
        )
    return all(shape[at] == whole[at] for at in others)


@rule("GatherND")
def gather_nd(x: Any, indices: Any, *, xp: ModuleType, batch_dims: int = 0) -> Any:
    batch = indices.shape[:batch_dims]
    if not batch_dims < indices.ndim or batch != x.shape[:batch_dims]:
        raise ValueError(f"the first {batch_dims} axes differ, or indices have no others")
    if batch_dims:
        grid = _grid(indices.shape[:-1], batch_dims).astype(_integers(indices))
        indices = xp.concat([grid if xp is np else tp.asarray(grid), indices], axis=-1)
    if xp is np:
        return x[_places(indices)]
    return xp.gather_nd(x, indices)


def _integers(indices: Any) -> np.dtype[Any]:
    return np.dtype(str(indices.dtype))


def _grid(shape: Sequence[int], count: int) -> Host:
    """Return the place of each element on the first axes, along a new last axis."""
    return np.moveaxis(np.indices(tuple(shape))[:count], 0, -1)


def _places(indices: Host) -> tuple[Any, ...]:
    """Return what NumPy's indexing takes, from indices along the last axis."""
    return (*np.moveaxis(indices, -1, 0), ...)


Reduction = Literal["add", "multiply", "max", "min"]
# Names of reductions: a method of NumPy's, and tensorplug's name.
_REDUCTIONS: Final[dict[str, tuple[Any, Reduction | None]]] = {
    "none": (None, None),
    "add": (np.add, "add"),
    "mul": (np.multiply, "multiply"),
    "max": (np.maximum, "max"),
    "min": (np.minimum, "min"),
}


@rule("ScatterND")
def scatter_nd(
    x: Any, indices: Any, updates: Any, *, xp: ModuleType, reduction: str = "none"
) -> Any:
    ufunc, name = _reduction(reduction)
    if xp is np:
        result = x.copy()
        if ufunc is None:
            result[_places(indices)] = updates
        else:
            ufunc.at(result, _places(indices), updates)
        return result
    if name is None:
        return tp.tensor_scatter_update(x, indices, updates)
    return tp.tensor_scatter_reduce(x, indices, updates, name)


@rule("ScatterElements", "Scatter")
def scatter_elements(
    x: Any,
    indices: Any,
    updates: Any,
    *,
    xp: ModuleType,
    axis: int = 0,
    reduction: str = "none",
) -> Any:
    _, name = _reduction(reduction)
    at = normal_axis(axis, x.ndim)
    if indices.shape != updates.shape:
        raise ValueError("indices and updates have different shapes")
    if _covers(indices.shape, x.shape, at) and xp is tp:
        return tp.scatter_along_axis(x, indices, updates, at, reduction=name)
    grid = _grid(indices.shape, x.ndim).astype(_integers(indices))
    parts = [grid[..., :at], indices[..., None], grid[..., at + 1 :]]
    return scatter_nd(x, xp.concat(parts, axis=-1), updates, xp=xp, reduction=reduction)


def _reduction(name: str) -> tuple[Any, Reduction | None]:
    if name not in _REDUCTIONS:
        raise ValueError(f"reduction is {name!r}, must be one of {', '.join(_REDUCTIONS)}")
    return _REDUCTIONS[name]


@rule("OneHot", host=[1])
def one_hot(indices: Any, depth: Host, values: Any, *, xp: ModuleType, axis: int = -1) -> Any:
    count = int(depth.reshape(()))
    at = normal_axis(axis, indices.ndim + 1)
    places = xp.expand_dims(xp.astype(indices, xp.int64), axis=at)
    classes = np.arange(count).reshape([-1 if i == at else 1 for i in range(indices.ndim + 1)])
    chosen = xp.where(places < 0, places + count, places) == classes
    return xp.where(chosen, values[1], values[0])


@rule("NonZero")
def non_zero(x: Any, *, xp: ModuleType) -> Any:
    """A scalar has no axes, so there are no rows; one that is not 0 is one column."""
    if x.ndim == 0:
        return np.zeros((0, int(bool(x))), np.int64)
    return xp.astype(xp.stack(xp.nonzero(x)), xp.int64)


@rule("Compress", host=[1])
def compress(x: Any, condition: Host, *, xp: ModuleType, axis: int | None = None) -> Any:
    flat = xp.reshape(x, (-1,)) if axis is None else x
    return gather(flat, np.flatnonzero(condition), xp=xp, axis=axis or 0)


@rule("Unique", host=None)
def unique(x: Host, *, axis: int | None = None, sorted: int = 1) -> tuple[Host, ...]:
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        values = values.take(order, 0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse]
    return values, *(one.astype(np.int64) for one in (first, inverse, counts))


@rule("TopK", since=11, host=[1])
def top_k(
    x: Any, k: Host, *, axis: int = -1, largest: int = 1, sorted: int = 1
) -> tuple[Any, Any]:
    """The result is sorted in any case."""
    del sorted
    count, at = int(k.reshape(())), normal_axis(axis, x.ndim)
    if not 0 <= count <= x.shape[at]:
        raise ValueError(f"k is {count}, must be from 0 to {x.shape[at]}")
    if largest:
        values, indices = tp.topk(tp.moveaxis(x, at, -1), count)
        values, indices = tp.moveaxis(values, -1, at), tp.moveaxis(indices, -1, at)
    else:
        order = tp.argsort(x, axis=at)
        indices = order[(*[slice(None)] * at, slice(count))]
        values = tp.take_along_axis(x, indices, at)
    return values, tp.astype(indices, "int64")


@rule("TopK", since=10, host=[1])
def top_k_10(x: Any, k: Host, *, axis: int = -1) -> Any:
    return top_k(x, k, axis=axis)


@rule("TopK")
def top_k_1(x: Any, *, k: int, axis: int = -1) -> Any:
    return top_k(x, np.asarray(k), axis=axis)
