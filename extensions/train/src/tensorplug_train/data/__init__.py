"""Batches of data for training."""

from __future__ import annotations

from tensorplug_train.data.batches import Batches, batches
from tensorplug_train.data.buckets import padded_batches

__all__ = ["Batches", "batches", "padded_batches"]
