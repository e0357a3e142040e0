"""The functions that formulas call, on tensors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Final

import tensorplug as tp

FUNCTIONS: Final = SimpleNamespace(
    abs=tp.abs,
    cos=tp.cos,
    exp=tp.exp,
    sin=tp.sin,
    sqrt=tp.sqrt,
    where=tp.where,
)
