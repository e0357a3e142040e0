"""Sparse tensors as coordinates and values, and sums of rows that a list picks."""

from __future__ import annotations

from tensorplug.introspection import families

_public = families.public("sparse")
globals().update(_public)
__all__ = sorted(_public)
