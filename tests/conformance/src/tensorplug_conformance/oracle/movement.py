"""References for movement: where each element comes from, index by index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.oracle.places import everywhere, spread, taken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_conformance.case import Array


def identity(x: Array) -> Array:
    """Itself."""
    return x


def reshape(x: Array, *, shape: Sequence[int]) -> Array:
    """Row-major order in another shape; -1 stands for the rest."""
    known = [n for n in shape if n != -1]
    rest = x.size // int(np.prod(known, dtype=int)) if known and np.prod(known) else x.size
    target = tuple(rest if n == -1 else n for n in shape)
    flat = np.empty(x.size, dtype=x.dtype)
    flat[:] = x.flat
    return flat.reshape(target)


def transpose(x: Array, *, perm: Sequence[int] | None = None) -> Array:
    """``out[i_perm[0], i_perm[1], ...] = x[i_0, i_1, ...]``."""
    order = [axis % x.ndim for axis in perm] if perm is not None else list(range(x.ndim))[::-1]
    shape = [x.shape[axis] for axis in order]
    at = everywhere(shape)
    return taken(x, [at[order.index(axis)] for axis in range(x.ndim)], shape)


def broadcast_to(x: Array, *, shape: Sequence[int]) -> Array:
    """Index 0 along every axis of length 1."""
    at = everywhere(shape)[len(shape) - x.ndim :]
    return taken(x, [0 * i if n == 1 else i for i, n in zip(at, x.shape, strict=True)], shape)


def slice_(x: Array, *, begin: Sequence[int], size: Sequence[int] | None = None) -> Array:
    """A block; -1 and missing sizes take the rest of the axis."""
    firsts = [*begin, *[0] * (x.ndim - len(begin))]
    sizes = list(size or ())
    counts = [*sizes, *[-1] * (x.ndim - len(sizes))]
    spans = [
        range(first, n if count == -1 else first + count)
        for first, count, n in zip(firsts, counts, x.shape, strict=True)
    ]
    return taken(x, spread(spans), [len(span) for span in spans])


def pad(x: Array, *, paddings: Sequence[Sequence[int]], constant_value: Any = None) -> Array:
    """The constant everywhere, then the elements in their place."""
    shape = [before + n + after for (before, after), n in zip(paddings, x.shape, strict=True)]
    constant = ("" if x.dtype.kind == "T" else 0) if constant_value is None else constant_value
    out = np.full(shape, np.asarray(constant).astype(x.dtype), dtype=x.dtype)
    spans = [range(before, before + n) for (before, _), n in zip(paddings, x.shape, strict=True)]
    out[spread(spans)] = x
    return out


def concat(xs: list[Array], *, axis: int = 0) -> Array:
    """Arrays one after the other along the axis."""
    at = axis % xs[0].ndim
    shape = list(xs[0].shape)
    shape[at] = sum(x.shape[at] for x in xs)
    out = np.empty(shape, dtype=xs[0].dtype)
    first = 0
    for x in xs:
        spans = [range(n) for n in x.shape]
        spans[at] = range(first, first + x.shape[at])
        out[spread(spans)] = x
        first += x.shape[at]
    return out


def expand_dims(input: Array, *, dim: int = 0) -> Array:
    """One more size of 1."""
    at = dim % (input.ndim + 1)
    return reshape(input, shape=(*input.shape[:at], 1, *input.shape[at:]))


def pack(xs: list[Array], *, axis: int = 0) -> Array:
    """Arrays side by side along a new axis."""
    at = axis % (xs[0].ndim + 1)
    out = np.empty((*xs[0].shape[:at], len(xs), *xs[0].shape[at:]), dtype=xs[0].dtype)
    for place, item in enumerate(xs):
        index: list[Any] = everywhere(item.shape)
        out[(*index[:at], place, *index[at:])] = item
    return out
