"""Assignment to a slice: a choice between what was there and what is spread over the slice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug import dtypes as dt
from tensorplug.dispatch import dispatch
from tensorplug.ops import setting as ops
from tensorplug.ops.creation import full
from tensorplug.ops.elementwise import where
from tensorplug.ops.slicing import STRIDED_SLICE_GRAD
from tensorplug.tables import DecompositionTable

if TYPE_CHECKING:
    from tensorplug.tensor import Tensor

decompositions = DecompositionTable()


@decompositions.of(ops.STRIDED_SLICE_UPDATE)
def strided_slice_update(tensor: Tensor, value: Tensor, *, attributes: dict[str, Any]) -> Tensor:
    shape = tensor.shape
    here = full(value.shape, True, dtype=dt.bool_)  # noqa: FBT003  # what it is filled with
    written = dispatch(STRIDED_SLICE_GRAD, here, shape=shape, **attributes)
    return where(written, dispatch(STRIDED_SLICE_GRAD, value, shape=shape, **attributes), tensor)
