"""Neural network ops: convolution, pooling, activation, normalization, recurrent cells."""

from __future__ import annotations

from tensorplug.introspection import families

_public = families.public("nn")
globals().update(_public)
__all__ = sorted(_public)
