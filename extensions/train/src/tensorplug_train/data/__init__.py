"""Batches of data for training."""

from __future__ import annotations

from tensorplug_train.data.batches import Batches, batches

__all__ = ["Batches", "batches"]
