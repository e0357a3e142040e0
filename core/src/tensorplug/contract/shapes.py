"""Shapes as plain tuples: broadcasting, axes, reshaping."""

from __future__ import annotations

import operator
from math import prod
from typing import TYPE_CHECKING, Final

from tensorplug.contract.arguments import quoted
from tensorplug.contract.extents import Extent, plain
from tensorplug.errors import ArgumentError, OutOfRangeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Shape = tuple[int, ...]

MOST_AXES: Final = 64
"""The highest rank, which is NumPy's: every tensor can be read as an array."""

MOST_BYTES: Final = 2**63 - 1
"""The most bytes that a tensor may have: no address lies beyond, on any device."""

_LEAST: Final = -(2**63)
_GREATEST: Final = 2**64 - 1
_TEXT_BYTES: Final = 16  # of a string in an array, without its text


def index(value: object, what: str = "value") -> int:
    """Return ``value`` as an int. Booleans and floats are rejected.

    Raises:
        ArgumentError: ``value`` is not an integer, or no integer dtype can represent it.

    """
    if value.__class__ is Extent:
        return value  # type: ignore[return-value]  # what needs the number asks for it
    if not isinstance(value, bool):
        try:
            number = operator.index(value)  # type: ignore[arg-type]  # raises what we catch
        except TypeError:
            pass
        else:
            if _LEAST <= number <= _GREATEST:
                return number
            raise ArgumentError(f"{what} must fit into 64 bits, got {quoted(number)}")
    raise ArgumentError(f"{what} must be an integer, got {quoted(value)}")


def as_shape(value: object, what: str = "shape") -> Shape:
    """Return ``value`` (an int or a sequence of ints) as a tuple of non-negative ints.

    Raises:
        ShapeError: a dimension is negative.
        ArgumentError: a dimension is not an integer.

    """
    dimensions = as_ints(value, what)
    if any(size < 0 for size in dimensions):
        raise ShapeError(f"{what} must not contain negative sizes, got {dimensions}")
    return dimensions


def as_ints(value: object, what: str = "value") -> tuple[int, ...]:
    """Return an int or a sequence of ints as a tuple of ints."""
    if isinstance(value, list | tuple):
        return tuple(index(item, what) for item in value)
    return (index(value, what),)


def check_limits(shape: Shape, itemsize: int) -> None:
    """Refuse a shape that no tensor can have. Unknown sizes, which are -1, count as 1.

    Sizes beside a size of 0 count too, as in NumPy.

    Raises:
        ShapeError: more than 64 axes, or 2**63 bytes or more.

    """
    if len(shape) > MOST_AXES:
        raise ShapeError(
            f"the result would have {len(shape)} axes, but a tensor has at most {MOST_AXES}"
        )
    bytes_ = abs(prod(filter(None, shape))) * (itemsize or _TEXT_BYTES)
    if bytes_ > MOST_BYTES:
        raise ShapeError(
            f"the result would have shape {quoted(list(shape))} and {quoted(bytes_)} bytes, but a "
            "tensor has less than 2**63"
        )


def size(shape: Shape) -> int:
    """Return the number of elements."""
    return prod(shape)


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape to which ``shapes`` broadcast under NumPy's rules.

    Raises:
        ShapeError: two sizes of one dimension differ and neither is 1.

    """
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for axis, length in enumerate(shape, start=rank - len(shape)):
            if result[axis] == 1:
                result[axis] = length
            elif length not in (1, result[axis]):
                listed = " and ".join(str(list(item)) for item in shapes)
                raise ShapeError(f"shapes {listed} cannot be broadcast together")
    return tuple(result)


def broadcast_axes(shape: Shape, target: Shape) -> tuple[int, ...]:
    """Return the axes of ``target`` along which ``shape`` was broadcast."""
    lead = len(target) - len(shape)
    stretched = (
        lead + axis
        for axis, length in enumerate(shape)
        if length == 1 and target[lead + axis] != 1
    )
    return (*range(lead), *stretched)


def normalize_axis(axis: object, rank: int, what: str = "axis") -> int:
    """Return ``axis`` counted from the front.

    Raises:
        OutOfRangeError: it lies outside ``[-rank, rank)``. The standard requires an IndexError.

    """
    number = index(axis, what)
    if not -rank <= number < rank:
        allowed = f"it must be from {-rank} to {rank - 1}" if rank else "a scalar has no axes"
        raise OutOfRangeError(f"{what} {number} is out of range for rank {rank}: {allowed}")
    return number % rank


def normalize_axes(axes: object, rank: int, what: str = "axis") -> tuple[int, ...]:
    """Return ``axes`` (None for all, an int, or a sequence) sorted and counted from the front.

    Raises:
        OutOfRangeError: an axis is out of range.
        ShapeError: an axis is named twice.

    """
    if axes is None:
        return tuple(range(rank))
    return tuple(sorted(distinct_axes(axes, rank, what)))


def distinct_axes(axes: object, rank: int, what: str = "axis") -> tuple[int, ...]:
    """Return ``axes`` (an int or a sequence) counted from the front, in the order given.

    Raises:
        OutOfRangeError: an axis is out of range.
        ShapeError: an axis is named twice.

    """
    numbers = tuple(normalize_axis(axis, rank, what) for axis in as_ints(axes, what))
    if len(set(numbers)) != len(numbers):
        raise ShapeError(f"{what} {quoted(axes)} names an axis twice")
    return numbers


def pairs(value: object, count: int) -> tuple[tuple[int, int], ...]:
    """Return a (before, after) pair of non-negative ints for each of ``count`` axes.

    Raises:
        ShapeError: ``value`` has another form.

    """
    if not isinstance(value, list | tuple) or len(value) != count:
        raise ShapeError(
            f"must be {count} (before, after) pairs, one per axis, got {quoted(value)}"
        )
    as_pairs = [as_shape(pair, "padding") for pair in value]
    if any(len(pair) != 2 for pair in as_pairs):
        raise ShapeError(f"must be (before, after) pairs, one per axis, got {quoted(value)}")
    return tuple((pair[0], pair[1]) for pair in as_pairs)


def reduce(shape: Shape, axes: Iterable[int], *, keep_dims: bool) -> Shape:
    """Return the shape after a reduction along ``axes``, which are normalized."""
    gone = set(axes)
    if keep_dims:
        return tuple(1 if axis in gone else length for axis, length in enumerate(shape))
    return tuple(length for axis, length in enumerate(shape) if axis not in gone)


def reshape(shape: Shape, target: Sequence[int]) -> Shape:
    """Return ``target`` with its -1 replaced by the size that keeps the number of elements.

    Raises:
        ShapeError: no such size exists.

    """
    before, sizes = plain(shape), plain(tuple(target))  # a call at other sizes is checked again
    unknown = [axis for axis, length in enumerate(sizes) if length == -1]
    if len(unknown) > 1 or any(length < -1 for length in sizes):
        raise ShapeError(f"shape {list(sizes)} may contain one -1 but no other negative size")
    if unknown:
        rest = prod(length for length in sizes if length != -1)
        if rest == 0 or size(before) % rest:
            raise ShapeError(f"cannot reshape {list(before)} to {list(sizes)}")
        axis = unknown[0]
        left, right = target[:axis], target[axis + 1 :]
        target = (*left, size(shape) // prod((*left, *right)), *right)
        sizes = plain(target)
    if size(sizes) != size(before):
        raise ShapeError(
            f"cannot reshape {list(before)} of {size(before)} elements "
            f"to {list(sizes)} of {size(sizes)}"
        )
    return tuple(target)
