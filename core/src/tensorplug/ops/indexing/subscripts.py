"""Subscripts: what ``x[key]`` means, by NumPy's rules."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.dispatch import host_values
from tensorplug.errors import ArgumentError, DTypeError, OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import TensorType

_ALL: Final = slice(None)
_BOUNDS: Final = (int, type(None))  # of slices that mean the same whenever they are equal


@dataclass(frozen=True, slots=True)
class Pick:
    """Elements picked by integers, or by a mask, along axes of what the slices leave.

    ``axis``: the first of ``count`` axes (1 unless it is a mask).
    """

    axis: int
    count: int
    index: Any  # a tensor, or an array of NumPy's
    mask: bool


@dataclass(eq=False, slots=True)
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
    def numbers(self) -> tuple[int, ...]:
        """The integers alone."""
        return tuple([item for item in self.basic if item.__class__ is int])

    @property
    def whole(self) -> bool:
        """Whether the slices take all as it is."""
        return self.shape == self.source and all(
            isinstance(item, slice) and item.step == 1 for item in self.basic
        )


def parse(x: TensorType, key: Any) -> Subscript:
    """Take ``key`` apart as an index of ``x``.

    Raises:
        OutOfRangeError: too many indices, or an integer out of range.
        OutOfRangeError: a mask of other sizes than the axes it stands for, and none of them 0.
        ArgumentError: what is no index at all.

    """
    given = key if isinstance(key, tuple) else (key,)
    blocks = _blocks(x.shape, given)
    if blocks is not None:
        return blocks
    parts = [_part(x, item) for item in given]
    parts, scalar = _spread(x, parts)
    reader = _Reader(x, picking=any(part.__class__ is _Array for part in parts))
    for part in parts:
        reader.read(part)
    place = reader.place if reader.together and reader.place is not None else 0
    basic, shape, picks = tuple(reader.basic), tuple(reader.shape), tuple(reader.picks)
    return Subscript(x.shape, basic, shape, picks, place, scalar)


def form(key: Any) -> tuple[Hashable, ...] | None:
    """Return what names a key of slices, new axes and ellipses, so that equal ones mean the same.

    None for all others; a slice cannot be hashed before Python 3.12.
    """
    parts: list[Hashable] = []
    for item in key if key.__class__ is tuple else (key,):
        if item.__class__ is slice:
            start, stop, step = item.start, item.stop, item.step
            if not (
                start.__class__ in _BOUNDS
                and stop.__class__ in _BOUNDS
                and step.__class__ in _BOUNDS
            ):
                return None
            parts.append((start, stop, step))
        elif item is None or item is Ellipsis:
            parts.append(item)
        else:
            return None
    return tuple(parts)


def integers(shape: Shape, key: tuple[Any, ...]) -> tuple[int, ...] | None:
    """Return a key of two or more of Python's integers, counted from the front; None for others.

    Nor does it know errors: ``parse`` does.
    """
    if not 1 < len(key) <= len(shape):
        return None
    found = []
    for item, size in zip(key, shape, strict=False):  # axes that no integer names come last
        if item.__class__ is not int or not -size <= item < size:
            return None
        found.append(item if item >= 0 else item + size)
    return tuple(found)


def along(shape: Shape, key: tuple[Any, ...]) -> tuple[int, int] | None:
    """Return axis and number, counted from the front, of a key like ``[:, 3]``; None for others.

    Nor does it know errors: ``parse`` does.
    """
    if len(key) > len(shape):
        return None
    found = None
    for axis, item in enumerate(key):
        if item.__class__ is int and found is None and -shape[axis] <= item < shape[axis]:
            found = (axis, item if item >= 0 else item + shape[axis])
        elif item.__class__ is not slice or item != _ALL:
            return None
    return found


def _blocks(shape: Shape, key: tuple[Any, ...]) -> Subscript | None:
    """Take a key of Python's integers, plain slices and new axes apart; None if it is another.

    Nor does it know errors: ``parse``, of which this is the short way, does.
    """
    basic: list[int | slice | None] = []
    left: list[int] = []
    axis, rank = 0, len(shape)
    for item in key:
        if item is None:
            basic.append(None)
            left.append(1)
            continue
        if axis == rank:
            return None
        size = shape[axis]
        if item.__class__ is int:
            if not -size <= item < size:
                return None
            basic.append(item if item >= 0 else item + size)
        elif item.__class__ is slice:
            if item.step == 0 or item.start.__class__ not in _BOUNDS:
                return None
            if item.stop.__class__ not in _BOUNDS or item.step.__class__ not in _BOUNDS:
                return None
            start, stop, step = item.indices(size)
            count = len(range(start, stop, step))
            basic.append(_span(start, count, step))
            left.append(count)
        else:
            return None
        axis += 1
    scalar = axis == rank and not left and None not in key
    basic += [slice(0, size, 1) for size in shape[axis:]]
    return Subscript(shape, tuple(basic), (*left, *shape[axis:]), (), 0, scalar)


class _Reader:
    """Reads the parts of a key in order.

    ``place``: how many axes stood before the first pick or, beside picks, integer; ``together``:
    whether these stand side by side.
    """

    def __init__(self, x: TensorType, *, picking: bool) -> None:
        self.x = x
        self.picking = picking
        self.basic: list[int | slice | None] = []
        self.shape: list[int] = []
        self.picks: list[Pick] = []
        self.place: int | None = None
        self.together = True
        self._after_pick = False
        self._axis = 0  # the next one of x

    def read(self, part: Any) -> None:
        """Read one part."""
        if part is None or part is Ellipsis or isinstance(part, slice):
            self._after_pick = False
            if part is None:
                self.basic.append(None)
                self.shape.append(1)
            elif part is not Ellipsis:  # which stands for no axis here
                self._read_slice(part)
            return
        if self.picking:
            self.together = self.together and (self.place is None or self._after_pick)
            self.place = len(self.shape) if self.place is None else self.place
        self._after_pick = True
        if isinstance(part, _Array):
            self._read_array(part)
        else:
            self.basic.append(_position(self.x, part, self._axis))
            self._axis += 1

    def _read_slice(self, part: slice) -> None:
        start, stop, step = _bounds(self.x, part, self._axis)
        count = len(range(start, stop, step))
        self.basic.append(_span(start, count, step))
        self.shape.append(count)
        self._axis += 1

    def _read_array(self, part: _Array) -> None:
        sizes = self.x.shape[self._axis : self._axis + part.axes]
        index = _fitting_mask(self.x, part, self._axis) if part.mask else part.index
        self.picks.append(Pick(len(self.shape), max(part.axes, 1), index, part.mask))
        if part.axes:
            self.basic.extend(slice(0, size, 1) for size in sizes)
            self.shape.extend(sizes)
        else:  # a mask of rank 0 picks along a new axis
            self.basic.append(None)
            self.shape.append(1)
        self._axis += part.axes


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
        array = host_values.as_array(list(part) if isinstance(part, range) else part)
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


def _fitting_mask(x: TensorType, part: _Array, axis: int) -> Any:
    """Return a mask of the sizes of the axes it stands for; one with a size of 0 picks nothing.

    Raises:
        OutOfRangeError: when it has another size; the standard wants IndexError.

    """
    wanted, given = x.shape[axis : axis + part.axes], tuple(part.index.shape)
    if given == wanted:
        return part.index
    if any(size not in {0, length} for size, length in zip(given, wanted, strict=True)):
        raise OutOfRangeError(
            f"cannot index {x} with a mask of shape {list(given)}: from axis {axis} on it must "
            f"have the sizes {list(wanted)}"
        )
    return np.zeros(wanted, np.bool_)
