"""Strided slices with TensorFlow's masks, and splitting a tensor into parts."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex

from tensorplug.contract import attributes, shapes
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import chained, dispatch, dispatch_multiple
from tensorplug.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ShapeLike, TensorLike

__all__ = ["split", "strided_slice", "unstack"]


def _infer_unpack(value: TensorType, *, axis: int) -> tuple[TensorType, ...]:
    part = TensorType(value.dtype, shapes.reduce(value.shape, (axis,), keep_dims=False))
    return (part,) * value.shape[axis]


UNPACK = KernelSpec(
    "Unpack",
    ("value",),
    _infer_unpack,
    attributes={"axis": attributes.axis("value", 0)},
    outputs=("outs[]",),
    linear=("value",),
    leading=("axis",),
)


def _read_sizes(value: Any, known: InputTypes) -> tuple[int, ...]:
    """Return the size of each part; a number of parts and a -1 are resolved."""
    length: int = known["x"].shape[known["axis"]]
    if not isinstance(value, list | tuple):
        count = shapes.index(value)
        if count < 1 or length % count:
            raise ShapeError(f"{length} elements cannot be split into {count} equal parts")
        return (length // count,) * count
    sizes = shapes.as_ints(value)
    if sizes.count(-1) > 1 or any(size < -1 for size in sizes):
        raise ShapeError(f"{list(sizes)} may hold one -1 and no other negative size")
    rest = length - sum(size for size in sizes if size != -1)
    if rest < 0 or (rest and -1 not in sizes):
        raise ShapeError(
            f"sizes {list(sizes)} do not make up the {length} elements of the axis (the list "
            "holds the sizes of the parts, not the places between them)"
        )
    return tuple(rest if size == -1 else size for size in sizes)


def _infer_split(
    x: TensorType, *, num_or_size_splits: tuple[int, ...], axis: int
) -> tuple[TensorType, ...]:
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    by_size = {
        size: TensorType(x.dtype, (*before, size, *after)) for size in set(num_or_size_splits)
    }
    return tuple(by_size[size] for size in num_or_size_splits)


SPLIT_V = KernelSpec(
    "SplitV",
    ("x",),
    _infer_split,
    attributes={
        "axis": attributes.axis("x", 0),
        "num_or_size_splits": Attribute(
            _read_sizes, form="tuple of ints >= 0 whose sum is the size of axis"
        ),
    },
    outputs=("outs[]",),
    linear=("x",),
    leading=("axis",),
)


@dataclass(frozen=True, slots=True)
class Selection:
    """The elements that a strided slice selects: ``start + i * step`` for i < ``count``, by axis.

    ``starts``, ``steps`` and ``counts`` have a number for each axis of the input. ``shape`` is the
    shape of the result, without the shrunk axes and with the new ones.
    """

    starts: tuple[int, ...]
    steps: tuple[int, ...]
    counts: tuple[int, ...]
    shape: Shape

    def slices(self) -> tuple[builtins.slice, ...]:
        """Return the selection as Python slices, one per axis of the input."""
        return tuple(
            # A slice that runs backwards to the first element ends at None.
            builtins.slice(start, None if (end := start + count * step) < 0 else end, step)
            for start, step, count in zip(self.starts, self.steps, self.counts, strict=True)
        )


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def selection(shape: Shape, slice_attributes: Mapping[str, Any]) -> Selection:
    """Return the elements that the attributes of StridedSlice select from a tensor of ``shape``.

    Entry i of begin, end and strides belongs to the next axis, unless bit i of a mask is set. If
    bit i is set in several masks, the first in this list applies:

    - ``ellipsis_mask``: the entry belongs to all axes that no other entry has.
    - ``new_axis_mask``: it belongs to no axis; the result has a new axis there.
    - ``shrink_axis_mask``: the element at begin is taken, and the axis is dropped.
    - ``begin_mask`` and ``end_mask``: the range begins, or ends, at the border of the axis.

    ``slice_attributes``: those of StridedSlice, by name.

    Raises:
        ShapeError: there are more entries than axes, or the index of a shrunk axis is out of
            range.

    """
    begin, end = slice_attributes["begin"], slice_attributes["end"]
    steps = slice_attributes["strides"]
    masks = {name: slice_attributes[name] for name in _MASKS}
    axes = _match_entries_to_axes(len(shape), len(begin), masks)
    ranges, result = [], []
    for entry, axis in axes:
        if axis is None:
            result.append(1)
        elif entry is None:
            ranges.append((0, 1, shape[axis]))
            result.append(shape[axis])
        elif masks["shrink_axis_mask"] >> entry & 1:
            ranges.append((_normalize_index(begin[entry], steps[entry], axis, shape[axis]), 1, 1))
        else:
            first = None if masks["begin_mask"] >> entry & 1 else begin[entry]
            last = None if masks["end_mask"] >> entry & 1 else end[entry]
            start, count = _clip(first, last, steps[entry], shape[axis])
            ranges.append((start, steps[entry], count))
            result.append(count)
    starts, strides, counts = zip(*ranges, strict=True) if ranges else ((), (), ())
    return Selection(starts, strides, counts, tuple(result))


def _match_entries_to_axes(
    rank: int, entries: int, masks: Mapping[str, int]
) -> list[tuple[int | None, int | None]]:
    """Return pairs of an entry and its axis.

    A new axis has None for the axis; an axis without an entry has None for the entry.
    """
    ellipsis, new_axis = masks["ellipsis_mask"], masks["new_axis_mask"]
    count = sum(not (ellipsis | new_axis) >> entry & 1 for entry in range(entries))
    if count > rank:
        raise ShapeError(f"{count} entries of begin take an axis, but the rank is {rank}")
    free = rank - count
    pairs: list[tuple[int | None, int | None]] = []
    axis = 0
    for entry in range(entries):
        if ellipsis >> entry & 1:
            pairs += [(None, axis + index) for index in range(free)]
            axis, free = axis + free, 0
        elif new_axis >> entry & 1:
            pairs.append((entry, None))
        else:
            pairs.append((entry, axis))
            axis += 1
    return pairs + [(None, axis + index) for index in range(free)]


def _clip(first: int | None, last: int | None, step: int, length: int) -> tuple[int, int]:
    """Return the start of a slice of an axis, and how many elements it has, as Python's.

    It is arithmetic, since lengths may be numbers that a plan is recorded with.
    """
    low, high = (0, length) if step > 0 else (-1, length - 1)
    ends = []
    for end, whole in ((first, low if step > 0 else high), (last, high if step > 0 else low)):
        counted = whole if end is None else end + length if end < 0 else end
        ends.append(whole if end is None else min(max(counted, low), high))
    start, stop = ends
    count = max(0, -((start - stop) // step))
    return (start if count else 0), count


def _normalize_index(index: int, step: int, axis: int, length: int) -> int:
    if step < 1:
        raise ArgumentError(f"axis {axis} is shrunk, so its stride must be positive, got {step}")
    if not -length <= index < length:
        raise ShapeError(f"index {index} is out of range for axis {axis} of length {length}")
    return index % length


def _read_end(value: Any, known: InputTypes) -> tuple[int, ...]:
    return _check_length(shapes.as_ints(value), known)


def _check_length(entries: tuple[int, ...], known: InputTypes) -> tuple[int, ...]:
    count: int = len(known["begin"])
    if len(entries) != count:
        raise ShapeError(f"{list(entries)} has {len(entries)} entries, but begin has {count}")
    return entries


def _read_strides(value: Any, known: InputTypes) -> tuple[int, ...]:
    if value is None:
        return (1,) * len(known["begin"])
    strides = _check_length(shapes.as_ints(value), known)
    if 0 in strides:
        raise ArgumentError(f"must not hold 0, got {list(strides)}")
    return strides


def _read_ellipsis(value: Any, _known: InputTypes) -> int:
    mask = shapes.index(value)
    if mask < 0 or mask & (mask - 1):
        raise ArgumentError(f"can have only one bit, for one ellipsis, got {mask:#b}")
    return mask


SLICE_ATTRIBUTES = {
    "begin": attributes.integers(),
    "end": Attribute(_read_end, form="tuple of ints, as long as begin"),
    "strides": Attribute(
        _read_strides, None, "tuple of ints other than 0, as long as begin; None becomes ones"
    ),
    "begin_mask": attributes.integer(0, at_least=0),
    "end_mask": attributes.integer(0, at_least=0),
    "ellipsis_mask": Attribute(_read_ellipsis, 0, "int: 0 or a power of 2"),
    "new_axis_mask": attributes.integer(0, at_least=0),
    "shrink_axis_mask": attributes.integer(0, at_least=0),
}


def _infer_strided_slice(x: TensorType, *, attributes: dict[str, Any]) -> TensorType:
    return TensorType(x.dtype, selection(x.shape, attributes).shape)


STRIDED_SLICE = KernelSpec(
    "StridedSlice", ("x",), _infer_strided_slice, attributes=SLICE_ATTRIBUTES, linear=("x",)
)


def _infer_strided_slice_grad(
    dy: TensorType, *, shape: Shape, attributes: dict[str, Any]
) -> TensorType:
    expected = selection(shape, attributes).shape
    if dy.shape != expected:
        raise ShapeError(f"dy must have the shape of the slice, {list(expected)}")
    return TensorType(dy.dtype, shape)


STRIDED_SLICE_GRAD = KernelSpec(
    "StridedSliceGrad",
    ("dy",),
    _infer_strided_slice_grad,
    attributes={"shape": attributes.shape(), **SLICE_ATTRIBUTES},
    linear=("dy",),
)


@chained
def unstack(x: TensorLike, /, axis: int = 0) -> tuple[Tensor, ...]:
    """Split ``x`` into its slices at each place along ``axis``; this axis is dropped.

    An axis of length 0 gives an empty tuple. ``stack`` is the inverse.

    Raises:
        OutOfRangeError: the axis is out of range.

    Source: the array API standard 2025.12; TensorFlow's Unpack.

    Examples:
        >>> first, second = tp.unstack([[1, 2], [3, 4]])
        >>> first, second
        (Tensor([1, 2], dtype=int32, device='cpu'), Tensor([3, 4], dtype=int32, device='cpu'))
        >>> [part.tolist() for part in tp.unstack([[1, 2], [3, 4]], axis=-1)]
        [[1, 3], [2, 4]]

    """
    return tuple(dispatch_multiple(UNPACK, x, axis=axis))


@chained
def split(
    x: TensorLike, num_or_size_splits: SupportsIndex | Sequence[SupportsIndex], axis: int = 0
) -> tuple[Tensor, ...]:
    """Split ``x`` into parts along ``axis``.

    Args:
        x: a tensor of any dtype.
        num_or_size_splits: the number of equal parts, or a list of their sizes. One size may be
            -1, which stands for the rest of the axis.
        axis: the axis to split.

    Raises:
        ShapeError: the axis cannot be split into equal parts, or the sizes do not add up to its
            length.

    Source: TensorFlow's SplitV. NumPy's split takes places instead of sizes.

    Examples:
        >>> x = tp.arange(6)
        >>> [part.tolist() for part in tp.split(x, 3)]
        [[0, 1], [2, 3], [4, 5]]
        >>> [part.tolist() for part in tp.split(x, [1, -1, 2])]  # sizes; -1 is the rest
        [[0], [1, 2, 3], [4, 5]]
        >>> [part.shape for part in tp.split(tp.zeros((2, 6)), 2, axis=1)]
        [(2, 3), (2, 3)]

    """
    parts = dispatch_multiple(SPLIT_V, x, axis=axis, num_or_size_splits=num_or_size_splits)
    return tuple(parts)


@chained
def strided_slice(
    x: TensorLike,
    begin: ShapeLike,
    end: ShapeLike,
    strides: ShapeLike | None = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Tensor:
    """Return every ``strides``-th element of ``x`` from ``begin`` to before ``end``, by axis.

    Indexing such as ``x[::2, ..., None, 3]`` does the same. As in Python, negative bounds count
    from the end, and bounds beyond an end are clipped. Bit i of a mask applies to entry i of the
    lists.

    Args:
        x: a tensor of any dtype.
        begin: the first index for each entry.
        end: the index before which each range ends.
        strides: the steps, all 1 by default. Negative steps run backwards; 0 is an error.
        begin_mask: entries whose begin is ignored, so that the range begins with the axis.
        end_mask: entries whose end is ignored, so that the range ends with the axis.
        ellipsis_mask: the entry, at most one, that stands for all axes without an entry. Without
            it, these axes come last.
        new_axis_mask: entries that add a new axis of length 1.
        shrink_axis_mask: entries that take the element at begin and drop the axis.

    Raises:
        ShapeError: there are more entries than axes, or the index of a shrunk axis is out of
            range.
        ArgumentError: a stride is 0, or the stride of a shrunk axis is not positive.

    Source: TensorFlow's StridedSlice.

    Examples:
        >>> x = tp.reshape(tp.arange(12), (3, 4))
        >>> tp.strided_slice(x, [0, 1], [3, 4], [2, 2])  # x[0:3:2, 1:4:2]
        Tensor([[ 1,  3],
                [ 9, 11]], dtype=int32, device='cpu')
        >>> tp.strided_slice(x, [1, 0], [2, 4], shrink_axis_mask=0b01)  # x[1, 0:4]
        Tensor([4, 5, 6, 7], dtype=int32, device='cpu')
        >>> tp.strided_slice(x, [0, -1], [1, 0], [1, -1], end_mask=0b10)  # x[0:1, -1::-1]
        Tensor([[3, 2, 1, 0]], dtype=int32, device='cpu')

    """
    first = shapes.as_ints(begin)
    return dispatch(
        STRIDED_SLICE,
        x,
        begin=first,
        end=shapes.as_ints(end),
        strides=(1,) * len(first) if strides is None else shapes.as_ints(strides),
        begin_mask=begin_mask,
        end_mask=end_mask,
        ellipsis_mask=ellipsis_mask,
        new_axis_mask=new_axis_mask,
        shrink_axis_mask=shrink_axis_mask,
    )
