"""Gradients of moving blocks: the inverse movements."""

from __future__ import annotations

from tensorplug.contract.rules import RuleTable
from tensorplug.ops import blocks as ops

rules: RuleTable = RuleTable()
rules.formulas(
    ops.BATCH_TO_SPACE_ND,
    x=lambda dy, block_shape, crops: ops.space_to_batch_nd(dy, block_shape, crops),
)
rules.formulas(
    ops.SPACE_TO_BATCH_ND,
    x=lambda dy, block_shape, paddings: ops.batch_to_space_nd(dy, block_shape, paddings),
)
rules.formulas(
    ops.DEPTH_TO_SPACE,
    x=lambda dy, block_size, data_format: ops.space_to_depth(dy, block_size, data_format),
)
rules.formulas(
    ops.SPACE_TO_DEPTH,
    x=lambda dy, block_size, data_format: ops.depth_to_space(dy, block_size, data_format),
)
