"""Ragged tensors: rows of different lengths, as values and the places where rows begin."""

from __future__ import annotations

from tensorplug.ops.ragged import ragged_gather, ragged_range, ragged_tensor_to_tensor

__all__ = ["ragged_gather", "ragged_range", "ragged_tensor_to_tensor"]
