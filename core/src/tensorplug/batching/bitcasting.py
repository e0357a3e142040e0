"""Batching of bitcasts, which change the last axis at most."""

from __future__ import annotations

from tensorplug.contract.batching import BatchingTable
from tensorplug.ops import bitcasting as ops

batching: BatchingTable = BatchingTable()

batching.leading(ops.BITCAST)
