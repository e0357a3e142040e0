"""Movement from primitives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.ops import movement as ops
from tensorplug.tables import DecompositionTable

if TYPE_CHECKING:
    from tensorplug.spec import TensorType
    from tensorplug.tensor import Tensor

decompositions = DecompositionTable()


@decompositions.of(ops.EXPAND_DIMS)
def expand_dims(input: Tensor, *, out: TensorType) -> Tensor:
    return ops.reshape(input, out.shape)


@decompositions.of(ops.PACK)
def pack(xs: list[Tensor], *, axis: int) -> Tensor:
    return ops.concat([ops.expand_dims(each, axis=axis) for each in xs], axis=axis)
