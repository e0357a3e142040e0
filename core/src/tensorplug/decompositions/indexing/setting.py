"""Assignment to a slice: Select between the old elements and the new ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import DecompositionTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.creation import ones
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.indexing import setting as ops
from tensorplug.ops.indexing.slicing import STRIDED_SLICE_GRAD, selection
from tensorplug.ops.movement import broadcast_to

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(alone=True)


@decompositions.of(ops.STRIDED_SLICE_UPDATE)
def strided_slice_update(tensor: Tensor, value: Tensor, *, attributes: dict[str, Any]) -> Tensor:
    part = selection(tensor.shape, attributes).shape
    here = ones(part, dtype=dt.bool_)
    how = {"shape": tensor.shape, **attributes}
    spread = dispatch(STRIDED_SLICE_GRAD, broadcast_to(value, part), **how)
    return where(dispatch(STRIDED_SLICE_GRAD, here, **how), spread, tensor)
