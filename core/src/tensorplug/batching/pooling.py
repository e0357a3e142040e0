"""Batching of pooling: the examples join the batch of images."""

from __future__ import annotations

from tensorplug.contract.batching import BatchingTable
from tensorplug.ops.nn.convolution import pooling as ops

batching: BatchingTable = BatchingTable()

for _spec in (ops.AVG_POOL, ops.AVG_POOL_3D, ops.MAX_POOL, ops.MAX_POOL_3D):
    batching.folded(_spec, "x")
for _spec in (ops.AVG_POOL_GRAD, ops.AVG_POOL_3D_GRAD, ops.MAX_POOL_GRAD, ops.MAX_POOL_3D_GRAD):
    batching.folded(_spec, *_spec.input_names)
