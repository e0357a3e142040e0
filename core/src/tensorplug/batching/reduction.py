"""Batching of reductions: along the axes of one example."""

from __future__ import annotations

from tensorplug.contract.batching import BatchingTable
from tensorplug.ops import reduction as ops

batching: BatchingTable = BatchingTable()

for _spec in (ops.SUM, ops.PROD, ops.MEAN, ops.MIN, ops.ALL, ops.ANY, ops.ARG_MAX, ops.ARG_MIN):
    batching.leading(_spec, "axis")
batching.leading(ops.MAX, "reduction_indices")
