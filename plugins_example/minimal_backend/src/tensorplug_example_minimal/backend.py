"""The backend object: copies to and from the device, and what a buffer is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from tensorplug.plugin import BackendMemoryError, TensorType
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

Array = np.ndarray[Any, Any]


class Box:  # REPLACE: hold a piece of the device's memory, and free it with the box
    """The data of a tensor. A bare array would work in other backends' kernels too, by mistake."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array


class MinimalBackend:
    """The members of ``tensorplug.plugin.Backend``, and one that is optional."""

    # REPLACE: the device's name, and the dtypes of its tensors: at least bool, int32 and float32.
    name, device = "minimal", f"NumPy {np.__version__}, primitives only"
    dtypes = dt.BOOL | dt.INTEGER | {dt.float32, dt.float64}
    survives_fork = True  # memory of the host is valid in a child process; few devices are

    def from_host(self, array: Array) -> Box:  # REPLACE: copy to the device
        """Return a copy of ``array`` in a box, or raise ``BackendMemoryError``."""
        try:
            return Box(array.copy())
        except MemoryError as error:
            raise BackendMemoryError(f"minimal: {error}") from error

    def to_host(self, buffer: Box) -> Array:  # REPLACE: copy from the device
        """Return the array itself: the core never writes into it."""
        return buffer.array

    def describe(self, buffer: object) -> TensorType:
        """Return dtype and shape; raise ``TypeError`` unless the buffer is a box of an array."""
        if not isinstance(buffer, Box) or not isinstance(buffer.array, np.ndarray):
            raise TypeError(f"{type(buffer).__name__} is not a Box of an array")
        return TensorType(dt.of(buffer.array.dtype), buffer.array.shape)

    def allocation(self, buffer: Box) -> tuple[Hashable, int]:  # REPLACE: address, bytes
        """Return the identity and size of the array that owns the memory, which views share."""
        owner = buffer.array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        return id(owner), owner.nbytes

    def synchronize(self) -> None:  # REPLACE: wait for the device
        """Do nothing: kernels have run when they return."""

    def memory(self) -> Mapping[str, int]:
        """Return no figures: there is no memory pool."""
        return {}

    def close(self) -> None:  # REPLACE: release the device
        """Do nothing: each box is freed with its tensor."""
