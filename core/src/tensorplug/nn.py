"""Neural network ops: convolution, pooling, activation, normalization, recurrent cells."""

from __future__ import annotations

from tensorplug import ops

_public = ops.public("nn")
globals().update(_public)
__all__ = sorted(_public)
