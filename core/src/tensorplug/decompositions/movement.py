"""Movement from primitives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops import joining
from tensorplug.ops import movement as ops

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable()


@decompositions.of(ops.EXPAND_DIMS)
def expand_dims(input: Tensor, *, out: TensorType) -> Tensor:
    return ops.reshape(input, out.shape)


@decompositions.of(joining.PACK)
def pack(xs: list[Tensor], *, axis: int) -> Tensor:
    return joining.concat([ops.expand_dims(x, axis=axis) for x in xs], axis=axis)
