"""Support for einops: after ``enable()``, ``einops.rearrange`` and related functions take tensors.

einops finds the library of an array among the subclasses of its ``AbstractBackend``; ``enable``
defines one. ``einops.array_api`` does not need it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.tensor import Tensor
from tensorplug.ops import arrangement, contraction, creation, joining, movement, ranges

if TYPE_CHECKING:
    import numpy as np

__all__ = ["enable"]


def enable() -> None:
    """Make ``einops.rearrange``, ``reduce``, ``repeat``, ``pack`` and ``einsum`` take tensors.

    Gradients flow through all of them. Calling it again does nothing.

    Raises:
        ModuleNotFoundError: einops is not installed.

    Examples:
        >>> import einops
        >>> tp.einops.enable()
        >>> einops.rearrange(tp.ones((2, 3, 4)), "a b c -> c (a b)").shape
        (4, 6)

    """
    _backend()


@functools.cache  # keeps the class alive, which einops does not
def _backend() -> type:
    from einops._backends import AbstractBackend  # an optional dependency

    return type("TensorplugBackend", (Operations, AbstractBackend), {})


class Operations:
    """The operations that einops requires."""

    framework_name = "tensorplug"

    def is_appropriate_type(self, tensor: Any) -> bool:
        """Return whether it is a tensor of this library."""
        return isinstance(tensor, Tensor)

    def from_numpy(self, x: np.ndarray[Any, Any]) -> Tensor:
        """Return an array as a tensor."""
        return creation.asarray(x)

    def to_numpy(self, x: Tensor) -> np.ndarray[Any, Any]:
        """Return a tensor as an array, for ``einops.asnumpy``."""
        return x.numpy()

    def arange(self, start: int, stop: int) -> Tensor:
        """Return the integers from ``start`` up to, but not including, ``stop``."""
        return ranges.arange(start, stop)

    def reshape(self, x: Tensor, shape: Any) -> Tensor:
        """Return the elements in another shape."""
        return movement.reshape(x, shape)

    def transpose(self, x: Tensor, axes: Any) -> Tensor:
        """Return the axes in another order."""
        return movement.permute_dims(x, axes)

    def stack_on_zeroth_dimension(self, tensors: list[Tensor]) -> Tensor:
        """Return tensors along a new first axis."""
        return joining.stack(tensors)

    def add_axis(self, x: Tensor, new_position: int) -> Tensor:
        """Return ``x`` with a new axis of length 1."""
        return movement.expand_dims(x, axis=new_position)

    def tile(self, x: Tensor, repeats: Any) -> Tensor:
        """Return copies of ``x`` side by side."""
        return arrangement.tile(x, repeats)

    def concat(self, tensors: list[Tensor], axis: int) -> Tensor:
        """Return tensors joined along an axis."""
        return joining.concat(tensors, axis=axis)

    def is_float_type(self, x: Tensor) -> bool:
        """Return whether a mean keeps the dtype."""
        return x.dtype in dt.FLOATING

    def einsum(self, pattern: str, *x: Tensor) -> Tensor:
        """Return a sum of products."""
        return contraction.einsum(pattern, *x)
