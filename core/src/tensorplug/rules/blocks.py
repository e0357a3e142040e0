"""Gradients of moving blocks: the inverse movements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.rules import RuleTable
from tensorplug.ops import blocks as ops

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import DataFormat

rules: RuleTable = RuleTable()


@rules.vjp(ops.BATCH_TO_SPACE_ND, "x")
def batch_to_space_nd(dy: Tensor, block_shape: tuple[int, ...], crops: ops.Pairs) -> Tensor:
    return ops.space_to_batch_nd(dy, block_shape, crops)


@rules.vjp(ops.SPACE_TO_BATCH_ND, "x")
def space_to_batch_nd(dy: Tensor, block_shape: tuple[int, ...], paddings: ops.Pairs) -> Tensor:
    return ops.batch_to_space_nd(dy, block_shape, paddings)


@rules.vjp(ops.DEPTH_TO_SPACE, "x")
def depth_to_space(dy: Tensor, block_size: int, data_format: DataFormat) -> Tensor:
    return ops.space_to_depth(dy, block_size, data_format)


@rules.vjp(ops.SPACE_TO_DEPTH, "x")
def space_to_depth(dy: Tensor, block_size: int, data_format: DataFormat) -> Tensor:
    return ops.depth_to_space(dy, block_size, data_format)
