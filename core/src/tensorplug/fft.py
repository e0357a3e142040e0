"""Fourier transforms, as the array API standard's extension ``fft`` has them."""

from __future__ import annotations

from tensorplug.introspection import families

_public = families.public("fft")
globals().update(_public)
__all__ = sorted(_public)
