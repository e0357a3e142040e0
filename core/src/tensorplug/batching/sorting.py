"""Batching of sorting."""

from __future__ import annotations

from tensorplug.contract.batching import BatchingTable
from tensorplug.ops import sorting as ops

batching: BatchingTable = BatchingTable()

batching.leading(ops.TOP_K)
for _spec in (ops.SORT, ops.ARG_SORT, ops.ARG_PARTITION):
    batching.leading(_spec, "axis")
