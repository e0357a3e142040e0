"""An op of tensorplug: ``swish(x, beta=1.0)``."""

from __future__ import annotations

from tensorplug_example_swish.op import (
    SWISH,
    swish,
)

__all__ = ["SWISH", "swish"]
