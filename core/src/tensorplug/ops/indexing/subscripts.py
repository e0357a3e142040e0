"""Parsing the keys of ``x[key]`` by NumPy's rules."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
from tensorplug.dispatch import host_values
from tensorplug.errors import ArgumentError, DTypeError, OutOfRangeError, SubscriptError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import TensorType

_FULL_SLICE: Final = slice(None)
_BOUND_TYPES: Final = (int, type(None))  # equal slices with such bounds have the same meaning


@dataclass(frozen=True, slots=True)
class Pick:
    """An index array or a mask, which picks elements from the result of the slices.

    ``axis`` is the first of the ``count`` axes that it indexes: one, or the rank of a mask.
    """

    axis: int
    count: int
    index: Any  # a tensor or a NumPy array
    mask: bool


@dataclass(eq=False, slots=True)
class Subscript:
    """A parsed key: slices, which come first, and picks from their result.

    ``source``: the shape of the indexed tensor.
    ``basic``: in order, integers, slices with bounds inside the axis, and None for new axes.
    ``shape``: the shape after these.
    ``picks``: index arrays and masks, which apply to that shape.
    ``place``: the position of the picks' common axes in the result.
    ``scalar``: whether the key has an integer for each axis and nothing else. For such keys, NumPy
    returns a number, not a view.
    """

    source: Shape
    basic: tuple[int | slice | None, ...]
    shape: Shape
    picks: tuple[Pick, ...]
    place: int
    scalar: bool

    @property
    def numbers(self) -> tuple[int, ...]:
        """The integers in ``basic``."""
        return tuple([entry for entry in self.basic if entry.__class__ is int])

    @property
    def whole(self) -> bool:
        """Whether the slices select everything, in order."""
        return self.shape == self.source and all(
            isinstance(entry, slice) and entry.step == 1 for entry in self.basic
        )


def parse(x: TensorType, key: Any) -> Subscript:
    """Parse ``key`` as an index of ``x``.

    Raises:
        OutOfRangeError: too many indices, or an integer out of range.
        OutOfRangeError: the sizes of a mask, other than 0, differ from those of its axes.
        ArgumentError: an entry of the key is not an index.

    """
    entries = key if isinstance(key, tuple) else (key,)
    subscript = _parse_basic(x.shape, entries)
    if subscript is not None:
        return subscript
    parts = [read_part(x, entry) for entry in entries]
    parts, scalar = expand_ellipsis(x, parts)
    reader = _Reader(x, picking=any(part.__class__ is IndexArray for part in parts))
    for part in parts:
        reader.read(part)
    place = reader.place if reader.together and reader.place is not None else 0
    basic, shape, picks = tuple(reader.basic), tuple(reader.shape), tuple(reader.picks)
    return Subscript(x.shape, basic, shape, picks, place, scalar)


def freeze_key(key: Any) -> tuple[Hashable, ...] | None:
    """Return a hashable form of a key of slices, new axes and ellipses; None for other keys.

    Equal forms mean the same. A slice itself cannot be hashed before Python 3.12.
    """
    parts: list[Hashable] = []
    for entry in key if key.__class__ is tuple else (key,):
        if entry.__class__ is slice:
            start, stop, step = entry.start, entry.stop, entry.step
            if not (
                start.__class__ in _BOUND_TYPES
                and stop.__class__ in _BOUND_TYPES
                and step.__class__ in _BOUND_TYPES
            ):
                return None
            parts.append((start, stop, step))
        elif entry is None or entry is Ellipsis:
            parts.append(entry)
        else:
            return None
    return tuple(parts)


def read_integers(shape: Shape, key: tuple[Any, ...]) -> tuple[int, ...] | None:
    """Return a key of two or more Python integers, counted from the front; None for other keys.

    It raises no errors; ``parse`` does.
    """
    if not 1 < len(key) <= len(shape):
        return None
    axes = []
    for entry, size in zip(key, shape, strict=False):  # the key may be shorter
        if entry.__class__ is not int or not -size <= entry < size:
            return None
        axes.append(entry if entry >= 0 else entry + size)
    return tuple(axes)


def read_axis_and_number(shape: Shape, key: tuple[Any, ...]) -> tuple[int, int] | None:
    """Return axis and number, counted from the front, of keys like ``[:, 3]``; None for others.

    It raises no errors; ``parse`` does.
    """
    if len(key) > len(shape):
        return None
    picked = None
    for axis, entry in enumerate(key):
        if entry.__class__ is int and picked is None and -shape[axis] <= entry < shape[axis]:
            picked = (axis, entry if entry >= 0 else entry + shape[axis])
        elif entry.__class__ is not slice or entry != _FULL_SLICE:
            return None
    return picked


def _parse_basic(shape: Shape, key: tuple[Any, ...]) -> Subscript | None:
    """Parse a key of Python integers, plain slices and new axes; None for other keys.

    This is a fast path of ``parse``. It raises no errors; ``parse`` does.
    """
    basic: list[int | slice | None] = []
    sizes: list[int] = []
    axis, rank = 0, len(shape)
    for entry in key:
        if entry is None:
            basic.append(None)
            sizes.append(1)
            continue
        if axis == rank:
            return None
        size = shape[axis]
        if entry.__class__ is int:
            if not -size <= entry < size:
                return None
            basic.append(entry if entry >= 0 else entry + size)
        elif entry.__class__ is slice:
            if entry.step.__class__ not in _BOUND_TYPES or entry.step == 0:
                return None
            if entry.start.__class__ not in _BOUND_TYPES:
                return None
            if entry.stop.__class__ not in _BOUND_TYPES:
                return None
            start, stop, step = entry.indices(size)
            count = len(range(start, stop, step))
            basic.append(_make_slice(start, count, step))
            sizes.append(count)
        else:
            return None
        axis += 1
    scalar = axis == rank and not sizes and None not in key
    basic += [slice(0, size, 1) for size in shape[axis:]]
    return Subscript(shape, tuple(basic), (*sizes, *shape[axis:]), (), 0, scalar)


class _Reader:
    """Reads the parts of a key in order.

    If a key has picks, NumPy treats its integers as picks too. ``place`` counts the axes of the
    result before the first of them; ``together`` says whether they are adjacent.
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
        self._axis = 0  # the next axis of x

    def read(self, part: Any) -> None:
        """Read one part."""
        if part is None or part is Ellipsis or isinstance(part, slice):
            self._after_pick = False
            if part is None:
                self.basic.append(None)
                self.shape.append(1)
            elif part is not Ellipsis:  # an ellipsis that is left stands for no axis
                self._read_slice(part)
            return
        if self.picking:
            self.together = self.together and (self.place is None or self._after_pick)
            self.place = len(self.shape) if self.place is None else self.place
        self._after_pick = True
        if isinstance(part, IndexArray):
            self._read_array(part)
        else:
            self.basic.append(normalize_number(self.x, part, self._axis))
            self._axis += 1

    def _read_slice(self, part: slice) -> None:
        start, stop, step = read_bounds(self.x, part, self._axis)
        count = len(range(start, stop, step))
        self.basic.append(_make_slice(start, count, step))
        self.shape.append(count)
        self._axis += 1

    def _read_array(self, part: IndexArray) -> None:
        sizes = self.x.shape[self._axis : self._axis + part.axes]
        index = _fit_mask(self.x, part, self._axis) if part.mask else part.index
        self.picks.append(Pick(len(self.shape), max(part.axes, 1), index, part.mask))
        if part.axes:
            self.basic.extend(slice(0, size, 1) for size in sizes)
            self.shape.extend(sizes)
        else:  # a mask of rank 0 picks along a new axis
            self.basic.append(None)
            self.shape.append(1)
        self._axis += part.axes


@dataclass(frozen=True, slots=True)
class IndexArray:
    """An array in a key; it indexes ``axes`` axes."""

    index: Any
    axes: int
    mask: bool


def read_part(x: TensorType, part: Any) -> Any:
    """Convert an entry of a key to None, an ellipsis, a slice, an integer or an ``IndexArray``."""
    if part is None or part is Ellipsis or isinstance(part, slice):
        return part
    if isinstance(part, list | tuple | range):
        part = _convert_list(x, part)
    elif isinstance(part, bool):
        part = np.asarray(part)
    elif not (hasattr(part, "dtype") and hasattr(part, "shape")):
        if hasattr(part, "__index__"):
            return operator.index(part)
        raise SubscriptError(f"cannot index {x} with {quoted(part)}")
    rank = len(part.shape)
    dtype = _read_dtype(x, part)
    if dtype is dt.bool_:
        if rank:
            return IndexArray(part, rank, mask=True)
        return IndexArray(np.zeros((int(bool(part)),), np.int32), 0, mask=False)
    if dtype not in dt.INTEGER:
        raise SubscriptError(
            f"cannot index {x} with {dtype}: an index tensor must hold integers or booleans"
        )
    if rank or is_unknown(part):
        return IndexArray(part, 1, mask=False)
    return operator.index(part)


def _read_dtype(x: TensorType, part: Any) -> dt.DType:
    try:
        return dt.of(part.dtype, f"indexing {x}")
    except DTypeError as error:  # of Python objects, of dates
        raise SubscriptError(str(error)) from None


def is_unknown(part: Any) -> bool:
    """Return whether an index has no data yet, such as that of a loop in a compiled function."""
    placement = getattr(part, "_placement", None)
    device = None if placement is None else placement.device
    return device is not None and device.interpreter.describe(part) is not None


def _convert_list(x: TensorType, part: Any) -> np.ndarray[Any, Any]:
    """Convert nested lists of integers or booleans to an array; empty ones become integers."""
    try:
        array = host_values.as_array(list(part) if isinstance(part, range) else part)
    except (ArgumentError, DTypeError) as error:
        raise type(error)(f"cannot index {x} with {part!r}: {error}") from None
    return array if array.size else array.astype(np.int32)


def expand_ellipsis(x: TensorType, parts: list[Any]) -> tuple[list[Any], bool]:
    """Replace the ellipsis by slices, or add them at the end, until each axis has an index.

    Returns:
        The parts, and whether all of them were integers, one for each axis.

    """
    count = 0
    ellipsis = None
    for position, part in enumerate(parts):
        if part is Ellipsis:
            if ellipsis is not None:
                raise SubscriptError("an index can have only one ellipsis")
            ellipsis = position
        elif part is not None:
            count += part.axes if part.__class__ is IndexArray else 1
    rank = x.rank
    if count > rank:
        raise OutOfRangeError(f"too many indices: {count} indices for {x}")
    scalar = count == rank and ellipsis is None and all(part.__class__ is int for part in parts)
    fill = [slice(None)] * (rank - count)
    if ellipsis is None:
        return [*parts, *fill], scalar
    if not fill:
        return parts, False
    return [*parts[:ellipsis], *fill, *parts[ellipsis + 1 :]], False


def read_bounds(x: TensorType, part: slice, axis: int) -> tuple[int, int, int]:
    """Return start, stop and step of a slice, inside the axis.

    Raises:
        ArgumentError: a bound is not an integer, or the step is 0.

    """
    try:
        return part.indices(x.shape[axis])
    except (TypeError, ValueError) as error:  # a bound that is not an integer, or a step of 0
        raise ArgumentError(f"cannot index axis {axis} of {x} by {part}: {error}") from None


def _make_slice(start: int, count: int, step: int) -> slice:
    """Return a slice of ``count`` elements with bounds inside the axis."""
    if not count:
        return slice(0, 0, 1)
    end = start + count * step
    return slice(start, end if end >= 0 else None, step)


def normalize_number(x: TensorType, number: int, axis: int) -> int:
    """Return an integer, counted from the front.

    Raises:
        OutOfRangeError: it is out of range.

    """
    length = x.shape[axis]
    if not -length <= number < length:
        raise OutOfRangeError(
            f"index {number} is out of range for axis {axis} of {x}, which has {length} elements"
        )
    return number % length


def _fit_mask(x: TensorType, part: IndexArray, axis: int) -> Any:
    """Return a mask with the sizes of its axes; a mask with a size of 0 picks nothing.

    Raises:
        OutOfRangeError: a size is neither 0 nor that of its axis. The array API standard requires
            an IndexError.

    """
    expected, shape = x.shape[axis : axis + part.axes], tuple(part.index.shape)
    if shape == expected:
        return part.index
    if any(size not in {0, length} for size, length in zip(shape, expected, strict=True)):
        raise OutOfRangeError(
            f"cannot index {x} with a mask of shape {list(shape)}: from axis {axis} on it must "
            f"have the sizes {list(expected)}"
        )
    return np.zeros(expected, np.bool_)
