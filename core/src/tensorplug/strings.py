"""Strings: parts of them, n-grams, patterns, buckets."""

from __future__ import annotations

from tensorplug import ops

_public = ops.public("strings")
globals().update(_public)
__all__ = sorted(_public)
