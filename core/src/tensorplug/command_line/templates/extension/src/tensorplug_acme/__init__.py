"""An op of tensorplug: ``acme(x, beta=1.0)``."""

from __future__ import annotations

from tensorplug_acme.op import (
    ACME,
    acme,
)

__all__ = ["ACME", "acme"]
