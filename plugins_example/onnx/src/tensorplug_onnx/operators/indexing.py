"""Operators that take elements at indices, or put them there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_onnx.rules import rule

if TYPE_CHECKING:
    from types import ModuleType


@rule("Gather")
def gather(x: Any, indices: Any, *, xp: ModuleType, axis: int = 0) -> Any:
    if xp is np:
        return x.take(indices, axis)
    return xp.gather(x, indices, axis)
