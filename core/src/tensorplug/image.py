"""Images: sizes, boxes, turns and projections, suppression, levels, pictures."""

from __future__ import annotations

from tensorplug.introspection import families

_public = families.public("image")
globals().update(_public)
__all__ = sorted(_public)
