"""Strings: parts of them, n-grams, patterns, buckets."""

from __future__ import annotations

from tensorplug.introspection import families

_public = families.public("strings")
globals().update(_public)
__all__ = sorted(_public)
