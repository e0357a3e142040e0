"""Device memory: buffers, the pool, memory shared with the host, and uploads."""

from __future__ import annotations
