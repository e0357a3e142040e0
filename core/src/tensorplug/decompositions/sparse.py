"""Sparse tensors. The numbers of elements and segments depend on the data: the host finds them."""

from __future__ import annotations

from tensorplug.contract.tables import DecompositionTable
from tensorplug.host_functions import sparse
from tensorplug.ops import sparse as ops

decompositions: DecompositionTable = DecompositionTable()
decompositions.on_host(ops.SPARSE_FILL_EMPTY_ROWS)(sparse.fill_empty_rows)
decompositions.on_host(ops.SPARSE_RESHAPE)(sparse.reshape)
decompositions.on_host(ops.SPARSE_SEGMENT_MEAN)(sparse.segment_mean)
decompositions.on_host(ops.SPARSE_SEGMENT_SUM)(sparse.segment_sum)
