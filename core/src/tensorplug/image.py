"""Images: sizes, boxes, turns and projections, suppression, levels, pictures."""

from __future__ import annotations

from tensorplug import ops

_public = ops.public("image")
globals().update(_public)
__all__ = sorted(_public)
