"""Signals: windows, frames, short-time Fourier transforms."""

from __future__ import annotations

from tensorplug import ops

_public = ops.public("signal")
globals().update(_public)
__all__ = sorted(_public)
