"""Loss functions."""

from __future__ import annotations

from tensorplug import ops

_public = ops.public("losses")
globals().update(_public)
__all__ = sorted(_public)
