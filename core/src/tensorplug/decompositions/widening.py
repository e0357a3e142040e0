"""Computing in a wider dtype where several rounding steps in a narrow one lose accuracy."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from tensorplug.ops.elementwise import astype

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dispatch.tensor import Tensor

__all__ = ["widened"]


def widened(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorate a decomposition: it gets the dtype to compute in; its result is rounded back."""

    @wraps(function)
    def decomposed(*inputs: Tensor | None, **attributes: Any) -> Tensor:
        dtype = None if inputs[0] is None else inputs[0].dtype
        if dtype is None or dtype.compute is dtype:
            return function(*inputs, **attributes)
        wide = [x if x is None else astype(x, dtype.compute) for x in inputs]
        return astype(function(*wide, **attributes), dtype)

    return decomposed
