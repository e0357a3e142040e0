"""Parts of a tensor from Slice, GatherV2 and PadV2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.arrangement import flip
from tensorplug.ops.extents import pad
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.indexing import slicing as ops
from tensorplug.ops.indexing.indexing import gather
from tensorplug.ops.movement import reshape
from tensorplug.ops.ranges import arange

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(alone=True)


@decompositions.of(ops.UNPACK)
def unpack(value: Tensor, *, axis: int, out: tuple[TensorType, ...]) -> list[Tensor]:
    ones = (1,) * len(out)
    return [
        reshape(part, part_type.shape)
        for part, part_type in zip(_split(value, axis, ones), out, strict=True)
    ]


decompositions.of(ops.SPLIT_V)(
    lambda x, *, num_or_size_splits, axis: _split(x, axis, num_or_size_splits)
)


def _split(x: Tensor, axis: int, sizes: tuple[int, ...]) -> list[Tensor]:
    lead = (0,) * axis
    parts, at = [], 0
    for size in sizes:
        parts.append(slice_(x, (*lead, at), (*(-1 for _ in lead), size)))
        at += size
    return parts


@decompositions.of(ops.STRIDED_SLICE)
def strided_slice(x: Tensor, *, attributes: dict[str, Any]) -> Tensor:
    # One block contains all selected elements; a gather picks them along axes with other steps.
    taken = ops.selection(x.shape, attributes)
    lowest, reach = _measure_extent(taken)
    result = slice_(x, lowest, reach)
    for axis, (start, step, count) in enumerate(
        zip(taken.starts, taken.steps, taken.counts, strict=True)
    ):
        if step != 1 and count > 1:
            first = start - lowest[axis]
            positions = arange(first, first + count * step, step, dtype=dt.int32)
            result = gather(result, positions, axis=axis)
    return reshape(result, taken.shape)


@decompositions.of(ops.STRIDED_SLICE_GRAD)
def strided_slice_grad(dy: Tensor, *, shape: Shape, attributes: dict[str, Any]) -> Tensor:
    taken = ops.selection(shape, attributes)
    lowest, reach = _measure_extent(taken)
    result = reshape(dy, taken.counts)
    for axis, (step, count) in enumerate(zip(taken.steps, taken.counts, strict=True)):
        if count > 1 and step < 0:
            result = flip(result, axis=axis)
        if count > 1 and abs(step) > 1:
            result = _spread(result, axis, abs(step))
    around = [
        (first, size - first - count)
        for first, size, count in zip(lowest, shape, reach, strict=True)
    ]
    return pad(result, around)


def _measure_extent(taken: ops.Selection) -> tuple[list[int], list[int]]:
    """Return the begin and the extent of the selection along each axis."""
    lowest, reach = [], []
    for start, step, count in zip(taken.starts, taken.steps, taken.counts, strict=True):
        way = (count - 1) * step if count else 0
        lowest.append(start + min(way, 0))
        reach.append(abs(way) + 1 if count else 0)
    return lowest, reach


def _spread(x: Tensor, axis: int, step: int) -> Tensor:
    """Put ``step - 1`` zeros between the elements along an axis."""
    before, count, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    apart = reshape(x, (*before, count, 1, *after))
    zeros = [(0, step - 1) if at == axis + 1 else (0, 0) for at in range(apart.ndim)]
    joined = reshape(pad(apart, zeros), (*before, count * step, *after))
    return slice_(joined, (0,), (*before, (count - 1) * step + 1, *after))
