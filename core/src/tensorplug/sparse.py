"""Sparse tensors as coordinates and values, and sums of rows that a list picks."""

from __future__ import annotations

from tensorplug.ops.sparse import (
    sparse_fill_empty_rows,
    sparse_reshape,
    sparse_segment_mean,
    sparse_segment_sum,
)

__all__ = ["sparse_fill_empty_rows", "sparse_reshape", "sparse_segment_mean", "sparse_segment_sum"]
