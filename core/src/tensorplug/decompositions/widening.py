"""Computing in float32 where several rounding steps in float16 would lose accuracy."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.ops.elementwise import astype

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dispatch.tensor import Tensor

__all__ = ["widened"]


def widened(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorate a decomposition: it gets float32 for float16, and its result is rounded back."""

    @wraps(function)
    def decomposed(*inputs: Tensor | None, **attributes: Any) -> Tensor:
        if inputs[0] is None or inputs[0].dtype is not dt.float16:
            return function(*inputs, **attributes)
        wide = [operand if operand is None else astype(operand, dt.float32) for operand in inputs]
        return astype(function(*wide, **attributes), dt.float16)

    return decomposed
