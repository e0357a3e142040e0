"""Loss functions."""

from __future__ import annotations

from tensorplug.ops.losses import softmax_cross_entropy

__all__ = ["softmax_cross_entropy"]
