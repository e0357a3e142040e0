"""The backend object: how data comes in and goes out, and what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import BackendMemoryError, TensorType
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

Array = np.ndarray[Any, Any]


class Box:  # REPLACE: hold a piece of the device's memory, given back when the box goes
    """A tensor's data here. A bare array would seem to work in other backends' kernels too."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array


class MinimalBackend:
    """The members of ``tensorplug.plugin.Backend``, and one that is optional."""

    # REPLACE: what the device is, and what tensors may be there: bool, int32, float32 at least.
    name, device = "minimal", f"NumPy {np.__version__}, primitives only"
    dtypes = dt.BOOL | dt.INTEGER | {dt.float32, dt.float64}
    survives_fork = True  # plain memory is good in a child process too; few devices are

    def from_host(self, array: Array) -> Box:  # REPLACE: copy to the device
        """Return a copy of ``array`` in a box, or raise ``BackendMemoryError``."""
        try:
            return Box(array.copy())
        except MemoryError as error:
            raise BackendMemoryError(f"minimal: {error}") from error

    def to_host(self, buffer: Box) -> Array:  # REPLACE: copy from the device
        """Return the array itself: the core lets nobody write into it."""
        return buffer.array

    def describe(self, buffer: object) -> TensorType:
        """Return dtype and shape; raise ``TypeError`` for what is no box with an array in it."""
        if not isinstance(buffer, Box) or not isinstance(buffer.array, np.ndarray):
            raise TypeError(f"{type(buffer).__name__} is no Box of an array")
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
        """Return nothing: there is no pool whose figures could be told."""
        return {}

    def close(self) -> None:  # REPLACE: give the device back
        """Do nothing: the boxes go with their tensors."""
