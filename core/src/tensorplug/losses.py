"""Loss functions."""

from __future__ import annotations

from tensorplug.introspection import families

_public = families.public("losses")
globals().update(_public)
__all__ = sorted(_public)
