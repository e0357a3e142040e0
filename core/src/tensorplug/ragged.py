"""Ragged tensors: rows of different lengths, as values and the places where rows begin."""

from __future__ import annotations

from tensorplug.introspection import families

_public = families.public("ragged")
globals().update(_public)
__all__ = sorted(_public)
