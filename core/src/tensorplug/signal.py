"""Signals: windows, frames, short-time Fourier transforms."""

from __future__ import annotations

from tensorplug.introspection import families

_public = families.public("signal")
globals().update(_public)
__all__ = sorted(_public)
