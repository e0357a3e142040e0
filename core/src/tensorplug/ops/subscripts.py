"""Subscripts: what ``x[key]`` means, by NumPy's rules."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug import dtypes as dt
from tensorplug import host
from tensorplug.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError

if TYPE_CHECKING:
    from tensorplug.shapes import Shape
    from tensorplug.spec import TensorType

__all__ = ["Pick", "Subscript", "parse"]


@dataclass(frozen=True, slots=True)
class Pick:
    """Elements picked by integers, or by a mask, along axes of what the slices leave.

    ``axis``: the first of ``count`` axes (1 unless it is a mask).
    """

    axis: int
    count: int
    index: Any  # a tensor, or an array of NumPy's
    mask: bool


@dataclass(frozen=True, slots=True)
class Subscript:
    """A key, taken apart: first slices, then picks.

    ``source``: the shape indexed. ``basic``: an integer, a slice with bounds that fit or None for
    a new axis, in order.
    ``shape``: of what they leave. ``picks``: of its axes. ``place``: where in the result the
    axes stand that the picks make together. ``scalar``: integers for all axes and nothing else, of
    which NumPy makes a number, not a view.
    """

    source: Shape
    basic: tuple[int | slice | None, ...]
    shape: Shape
    picks: tuple[Pick, ...]
    place: int
    scalar: bool

    @property
    def whole(self) -> bool:
        """Whether the slices take all as it is."""
        return self.shape == self.source and all(
            isinstance(each, slice) and each.step == 1 for each in self.basic
        )


def parse(x: TensorType, key: Any) -> Subscript:
    """Take ``key`` apart as an index of ``x``.

    Raises:
        OutOfRangeError: too many indices, or an integer out of range.
        ShapeError: a mask of other sizes than the axes it stands for.
        ArgumentError: what is no index at all.

    """
    parts = [_part(x, each) for each in (key if isinstance(key, tuple) else (key,))]
    parts, scalar = _spread(x, parts)
    picking = any(part.__class__ is _Array for part in parts)
    basic: list[int | slice | None] = []
    shape: list[int] = []
    picks: list[Pick] = []
    axis = 0  # of x
    place: int | None = None
    together, before = True, False  # whether picks and integers stand side by side
    for part in parts:
        if part is None or part is Ellipsis:  # this one stands for no axis
            before = False
            if part is None:
                basic.append(None)
                shape.append(1)
            continue
        advanced = not isinstance(part, slice)
        if advanced and picking:
            together = together and (place is None or before)
            place = len(shape) if place is None else place
        before = advanced
        if isinstance(part, slice):
            start, stop, step = _bounds(x, part, axis)
            count = len(range(start, stop, step))
            basic.append(_span(start, count, step))
            shape.append(count)
            axis += 1
        elif isinstance(part, _Array):
            for length in x.shape[axis : axis + part.axes]:
                basic.append(slice(0, length, 1))
            if not part.axes:  # a mask of rank 0 picks along a new axis
                basic.append(None)
            taken = max(part.axes, 1)
            picks.append(Pick(len(shape), taken, part.index, part.mask))
            if part.mask:
                _check_mask(x, part, axis)
            shape.extend(x.shape[axis : axis + part.axes] if part.axes else (1,))
            axis += part.axes
        else:
            basic.append(_position(x, part, axis))
            axis += 1
    if not together:
        place = 0
    return Subscript(x.shape, tuple(basic), tuple(shape), tuple(picks), place or 0, scalar)


@dataclass(frozen=True, slots=True)
class _Array:
    """An array among the parts of a key; it takes the place of ``axes`` axes."""

    index: Any
    axes: int
    mask: bool


def _part(x: TensorType, part: Any) -> Any:
    """Return one part of a key: None, an ellipsis, a slice, an integer or an ``_Array``."""
    if part is None or part is Ellipsis or isinstance(part, slice):
        return part
    if isinstance(part, list | tuple | range):
        part = _listed(x, part)
    elif isinstance(part, bool):
        part = np.asarray(part)
    elif not (hasattr(part, "dtype") and hasattr(part, "shape")):
        if hasattr(part, "__index__"):
            return operator.index(part)
        raise ArgumentError(f"cannot index {x} with {part!r}")
    rank = len(part.shape)
    dtype = dt.of(part.dtype, f"indexing {x}")
    if dtype is dt.bool_:
        if rank:
            return _Array(part, rank, mask=True)
        return _Array(np.zeros((int(bool(part)),), np.int32), 0, mask=False)
    if dtype not in dt.INTEGER:
        raise ArgumentError(
            f"cannot index {x} with {dtype}: an index tensor must hold integers or booleans"
        )
    return _Array(part, 1, mask=False) if rank else operator.index(part)


def _listed(x: TensorType, part: Any) -> np.ndarray[Any, Any]:
    """Return nested lists of integers or booleans as an array; empty ones hold integers."""
    try:
        array = host.as_array(list(part) if isinstance(part, range) else part)
    except (ArgumentError, DTypeError) as error:
        raise type(error)(f"cannot index {x} with {part!r}: {error}") from None
    return array if array.size else array.astype(np.int32)


def _spread(x: TensorType, parts: list[Any]) -> tuple[list[Any], bool]:
    """Return the parts with slices for the ellipsis, or at the end; whether all are integers."""
    given = 0
    dots = None
    for at, part in enumerate(parts):
        if part is Ellipsis:
            if dots is not None:
                raise ArgumentError("an index may hold one ellipsis")
            dots = at
        elif part is not None:
            given += part.axes if part.__class__ is _Array else 1
    rank = x.rank
    if given > rank:
        raise OutOfRangeError(f"{given} indices for {x}")
    scalar = given == rank and dots is None and all(part.__class__ is int for part in parts)
    fill = [slice(None)] * (rank - given)
    if dots is None:
        return [*parts, *fill], scalar
    if not fill:
        return parts, False
    return [*parts[:dots], *fill, *parts[dots + 1 :]], False


def _bounds(x: TensorType, part: slice, axis: int) -> tuple[int, int, int]:
    try:
        return part.indices(x.shape[axis])
    except (TypeError, ValueError) as error:  # a bound that is no integer, a step of 0
        raise ArgumentError(f"cannot index axis {axis} of {x} by {part}: {error}") from None


def _span(start: int, count: int, step: int) -> slice:
    """Return a slice of ``count`` elements with bounds that fit."""
    if not count:
        return slice(0, 0, 1)
    end = start + count * step
    return slice(start, end if end >= 0 else None, step)


def _position(x: TensorType, number: int, axis: int) -> int:
    length = x.shape[axis]
    if not -length <= number < length:
        raise OutOfRangeError(
            f"index {number} is out of range for axis {axis} of {x}, which has {length} elements"
        )
    return number % length


def _check_mask(x: TensorType, part: _Array, axis: int) -> None:
    wanted, given = x.shape[axis : axis + part.axes], tuple(part.index.shape)
    if given != wanted:
        raise ShapeError(
            f"cannot index {x} with a mask of shape {list(given)}: from axis {axis} on it must "
            f"have the sizes {list(wanted)}"
        )
