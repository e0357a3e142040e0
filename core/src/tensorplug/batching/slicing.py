"""Batching of slices and splits."""

from __future__ import annotations

from tensorplug.contract.batching import BatchingTable
from tensorplug.ops.indexing import slicing as ops

batching: BatchingTable = BatchingTable()

batching.leading(ops.UNPACK, "axis")
batching.leading(ops.SPLIT_V, "axis")
