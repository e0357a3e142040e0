"""One image, or a batch of them: arguments of functions that take both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.dispatch.calls import as_tensor
from tensorplug.errors import ShapeError

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor


def read_images(value: Any, what: str) -> Tensor:
    """Return [height, width, channels] or [batch, height, width, channels] as a tensor.

    Raises:
        ShapeError: the rank is another one.

    """
    tensor = as_tensor(value, what=what)
    if tensor.ndim not in (3, 4):
        raise ShapeError(
            f"{what} must have the shape [height, width, channels] or [batch, height, width, "
            f"channels], got {tensor.type}"
        )
    return tensor
