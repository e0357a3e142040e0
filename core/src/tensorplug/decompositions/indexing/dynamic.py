"""Windows by gathers of rows, axis by axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.elementwise.arithmetic import maximum
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import logical_and
from tensorplug.ops.indexing import dynamic as ops
from tensorplug.ops.indexing.indexing import gather
from tensorplug.ops.movement import identity, reshape
from tensorplug.ops.ranges import arange

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.contract.shapes import Shape
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(alone=True)


def _places(starts: Tensor, lengths: Shape, sizes: Shape) -> Iterator[tuple[int, Tensor]]:
    """Yield each axis that the window does not fill, and where it begins there: ``[*batch, 1]``.

    Axes are counted after those of the batch.
    """
    wide = starts if starts.dtype.itemsize >= dt.int32.itemsize else astype(starts, dt.int32)
    for axis, (length, size) in enumerate(zip(lengths, sizes, strict=True)):
        if size != length:
            at = gather(wide, arange(axis, axis + 1, dtype=dt.int32), axis=-1)
            at = maximum(where(at < 0, at + length, at), 0)
            # No minimum: where it is the complement of a maximum, Intel's OpenCL is wrong.
            yield axis, astype(where(at > length - size, length - size, at), dt.int32)


@decompositions.of(ops.DYNAMIC_SLICE)
def dynamic_slice(x: Tensor, starts: Tensor, *, sizes: Shape) -> Tensor:
    batch, result = starts.ndim - 1, x
    for axis, at in _places(starts, x.shape[batch:], sizes):
        rows = at + arange(sizes[axis], dtype=dt.int32)
        result = gather(result, rows, axis=batch + axis, batch_dims=batch)
    return result if result is not x else identity(x)


@decompositions.of(ops.DYNAMIC_UPDATE_SLICE)
def dynamic_update_slice(x: Tensor, update: Tensor, starts: Tensor) -> Tensor:
    if not update.size:
        return identity(x)
    batch, spread, inside = starts.ndim - 1, update, None
    for axis, at in _places(starts, x.shape[batch:], update.shape[batch:]):
        length, size = x.shape[batch + axis], update.shape[batch + axis]
        rows = arange(length, dtype=dt.int32) - at  # of the update
        here = logical_and(rows >= 0, rows < size)
        nearest = where(here, rows, 0)
        spread = gather(spread, nearest, axis=batch + axis, batch_dims=batch)
        others = (1,) * (x.ndim - batch - axis - 1)
        here = reshape(here, (*x.shape[:batch], *(1,) * axis, length, *others))
        inside = here if inside is None else logical_and(inside, here)
    return identity(spread) if inside is None else where(inside, spread, x)
