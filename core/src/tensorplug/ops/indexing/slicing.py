"""Strided slices with TensorFlow's masks, and cutting a tensor into parts."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes, shapes
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import chained, dispatch, dispatch_multiple
from tensorplug.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor

__all__ = ["split", "strided_slice", "unstack"]


def _unpacked(value: TensorType, *, axis: int) -> tuple[TensorType, ...]:
    part = TensorType(value.dtype, shapes.reduce(value.shape, (axis,), keep_dims=False))
    return (part,) * value.shape[axis]


UNPACK = KernelSpec(
    "Unpack",
    ("value",),
    _unpacked,
    attributes={"axis": attributes.axis("value", 0)},
    outputs=("outs[]",),
)


def _sizes(value: Any, known: InputTypes) -> tuple[int, ...]:
    """Return the size of each part, which is what a number of parts or a -1 stands for."""
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
        raise ShapeError(f"sizes {list(sizes)} do not make up the {length} elements of the axis")
    return tuple(rest if size == -1 else size for size in sizes)


def _split(
    x: TensorType, *, num_or_size_splits: tuple[int, ...], axis: int
) -> tuple[TensorType, ...]:
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    return tuple(TensorType(x.dtype, (*before, size, *after)) for size in num_or_size_splits)


SPLIT_V = KernelSpec(
    "SplitV",
    ("x",),
    _split,
    attributes={
        "axis": attributes.axis("x", 0),
        "num_or_size_splits": Attribute(
            _sizes, form="tuple of ints >= 0 whose sum is the size of axis"
        ),
    },
    outputs=("outs[]",),
)


@dataclass(frozen=True, slots=True)
class Selection:
    """What a strided slice takes: elements ``start + i * step`` for i below ``count``, by axis.

    ``shape``: of the result, in which some axes are gone and others are new.
    """

    starts: tuple[int, ...]
    steps: tuple[int, ...]
    counts: tuple[int, ...]
    shape: Shape

    def slices(self) -> tuple[builtins.slice, ...]:
        """Return it as Python's slices, one per axis of the input."""
        return tuple(
            # A slice that runs backwards to the first element has no number for its end.
            builtins.slice(start, None if (end := start + count * step) < 0 else end, step)
            for start, step, count in zip(self.starts, self.steps, self.counts, strict=True)
        )


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def selection(shape: Shape, given: Mapping[str, Any]) -> Selection:
    """Return what the attributes of StridedSlice select from a tensor of ``shape``.

    Entry i of begin, end and strides belongs to the next axis, unless bit i of a mask says
    otherwise: ``ellipsis_mask``: to all axes that no other entry takes; ``new_axis_mask``: to
    none, but the result has a new axis there; ``shrink_axis_mask``: to one whose element at
    begin is taken, and the axis is gone; ``begin_mask`` and ``end_mask``: the range begins, or
    ends, where the axis does. The first that applies decides, in this order.

    Raises:
        ShapeError: more entries than axes, or an index to shrink to that is out of range.

    """
    begin, end, steps = given["begin"], given["end"], given["strides"]
    masks = {name: given[name] for name in _MASKS}
    axes = _axes_of_entries(len(shape), len(begin), masks)
    ranges, result = [], []
    for entry, axis in axes:
        if axis is None:
            result.append(1)
        elif entry is None:
            ranges.append((0, 1, shape[axis]))
            result.append(shape[axis])
        elif masks["shrink_axis_mask"] >> entry & 1:
            ranges.append((_place(begin[entry], steps[entry], axis, shape[axis]), 1, 1))
        else:
            first = None if masks["begin_mask"] >> entry & 1 else begin[entry]
            last = None if masks["end_mask"] >> entry & 1 else end[entry]
            span = range(*builtins.slice(first, last, steps[entry]).indices(shape[axis]))
            ranges.append((span.start if span else 0, span.step, len(span)))
            result.append(len(span))
    starts, strides, counts = zip(*ranges, strict=True) if ranges else ((), (), ())
    return Selection(starts, strides, counts, tuple(result))


def _axes_of_entries(
    rank: int, entries: int, masks: Mapping[str, int]
) -> list[tuple[int | None, int | None]]:
    """Return pairs of an entry and its axis: None for no axis (a new one), or no entry."""
    ellipsis = masks["ellipsis_mask"]
    named = [at for at in range(entries) if not (ellipsis | masks["new_axis_mask"]) >> at & 1]
    if len(named) > rank:
        raise ShapeError(f"{len(named)} entries of begin take an axis, but the rank is {rank}")
    free = rank - len(named)
    pairs: list[tuple[int | None, int | None]] = []
    axis = 0
    for at in range(entries):
        if ellipsis >> at & 1:
            pairs += [(None, axis + index) for index in range(free)]
            axis, free = axis + free, 0
        elif masks["new_axis_mask"] >> at & 1:
            pairs.append((at, None))
        else:
            pairs.append((at, axis))
            axis += 1
    return pairs + [(None, axis + index) for index in range(free)]


def _place(index: int, step: int, axis: int, length: int) -> int:
    if step < 1:
        raise ArgumentError(f"axis {axis} is shrunk, so its stride must be positive, got {step}")
    if not -length <= index < length:
        raise ShapeError(f"index {index} is out of range for axis {axis} of length {length}")
    return index % length


def _end(value: Any, known: InputTypes) -> tuple[int, ...]:
    return _as_long(shapes.as_ints(value), known)


def _as_long(given: tuple[int, ...], known: InputTypes) -> tuple[int, ...]:
    count: int = len(known["begin"])
    if len(given) != count:
        raise ShapeError(f"{list(given)} is not as long as begin, which has {count} entries")
    return given


def _strides(value: Any, known: InputTypes) -> tuple[int, ...]:
    if value is None:
        return (1,) * len(known["begin"])
    strides = _as_long(shapes.as_ints(value), known)
    if 0 in strides:
        raise ArgumentError(f"must not hold 0, got {list(strides)}")
    return strides


def _ellipsis(value: Any, _known: InputTypes) -> int:
    mask = shapes.index(value)
    if mask < 0 or mask & (mask - 1):
        raise ArgumentError(f"may have one bit, since there can be one ellipsis, got {mask:#b}")
    return mask


SELECTING = {
    "begin": attributes.integers(),
    "end": Attribute(_end, form="tuple of ints, as long as begin"),
    "strides": Attribute(
        _strides, None, "tuple of ints other than 0, as long as begin; None becomes ones"
    ),
    "begin_mask": attributes.integer(0, at_least=0),
    "end_mask": attributes.integer(0, at_least=0),
    "ellipsis_mask": Attribute(_ellipsis, 0, "int: 0 or a power of 2"),
    "new_axis_mask": attributes.integer(0, at_least=0),
    "shrink_axis_mask": attributes.integer(0, at_least=0),
}


def _strided(x: TensorType, *, attributes: dict[str, Any]) -> TensorType:
    return TensorType(x.dtype, selection(x.shape, attributes).shape)


STRIDED_SLICE = KernelSpec("StridedSlice", ("x",), _strided, attributes=SELECTING)


def _scattered(dy: TensorType, *, shape: Shape, attributes: dict[str, Any]) -> TensorType:
    wanted = selection(shape, attributes).shape
    if dy.shape != wanted:
        raise ShapeError(f"dy must have shape {list(wanted)}, that of the slice")
    return TensorType(dy.dtype, shape)


STRIDED_SLICE_GRAD = KernelSpec(
    "StridedSliceGrad",
    ("dy",),
    _scattered,
    attributes={"shape": attributes.shape(), **SELECTING},
)


@chained
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the parts of ``x`` at each place along ``axis``, which they do not have.

    An axis of length 0 has no parts. (TensorFlow's Unpack.)
    """
    return tuple(dispatch_multiple(UNPACK, x, axis=axis))


@chained
def split(x: Any, num_or_size_splits: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Return ``x`` cut into parts along ``axis``.

    Args:
        x: a tensor of any dtype.
        num_or_size_splits: the number of equal parts; or a list of their sizes, of which one
            may be -1: it takes the rest.
        axis: along which.

    Raises:
        ShapeError: the parts cannot be equal, or their sizes do not make up the axis.

    (TensorFlow's SplitV.)

    """
    parts = dispatch_multiple(SPLIT_V, x, axis=axis, num_or_size_splits=num_or_size_splits)
    return tuple(parts)


@chained
def strided_slice(
    x: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Tensor:
    """Return every ``strides``-th element of ``x`` from ``begin`` to before ``end``, by axis.

    Indexing says the same: ``x[::2, ..., None, 3]``. Bounds are Python's: negative ones count
    from the end, those beyond it end there. Bit i of a mask concerns entry i of the lists.

    Args:
        x: a tensor of any dtype.
        begin: one integer per entry.
        end: likewise.
        strides: likewise, none of them 0; 1 by default. Negative ones run backwards.
        begin_mask: where begin is ignored: the range begins where the axis does.
        end_mask: likewise for end.
        ellipsis_mask: which entry, one at most, stands for all axes that no other takes; without
            any, they come last.
        new_axis_mask: which entries make a new axis of length 1.
        shrink_axis_mask: of which axes one element is taken, at begin, and the axis is gone.

    Raises:
        ShapeError: more entries than axes, or an index to shrink to that is out of range.
        ArgumentError: a stride of 0, or none that is positive where an axis is shrunk.

    (TensorFlow's StridedSlice.)

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
