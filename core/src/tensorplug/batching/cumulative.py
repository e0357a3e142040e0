"""Batching of cumulative sums and products."""

from __future__ import annotations

from tensorplug.contract.batching import BatchingTable
from tensorplug.ops import cumulative as ops

batching: BatchingTable = BatchingTable()

batching.leading(ops.CUMSUM, "axis")
batching.leading(ops.CUMPROD, "axis")
