"""The functions that formulas call, on tensors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Final

from tensorplug.ops import elementwise, powers

FUNCTIONS: Final = SimpleNamespace(**vars(elementwise), expm1=powers.expm1, log1p=powers.log1p)
