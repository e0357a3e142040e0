"""The backend object: how data comes in and goes out, and what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import BackendMemoryError, TensorType
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

Array = np.ndarray[Any, Any]


class Box:
    """A tensor's data here: an array in a box that only this backend opens.

    A bare array would do. But then a kernel of another backend, or code that forgot that
    buffers belong to their backend, would seem to work on it; a box makes that mistake fail.
    """

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array


class MinimalBackend:
    """The members of ``tensorplug.plugin.Backend``, and one that is optional."""

    name, device = "contract-0-1", f"NumPy {np.__version__}, primitives only"
    survives_fork = True  # plain memory is good in a child process too
    dtypes = dt.BOOL | dt.INTEGER | {dt.float32, dt.float64}

    def from_host(self, array: Array) -> Box:
        """Return a copy of ``array`` in a box, or raise ``BackendMemoryError``."""
        try:
            return Box(array.copy())
        except MemoryError as error:
            raise BackendMemoryError(f"contract-0-1: {error}") from error

    def to_host(self, buffer: Box) -> Array:
        """Return the array itself: the core lets nobody write into it."""
        return buffer.array

    def describe(self, buffer: object) -> TensorType:
        """Return dtype and shape; raise ``TypeError`` for what is no box with an array in it."""
        if not isinstance(buffer, Box) or not isinstance(buffer.array, np.ndarray):
            raise TypeError(f"{type(buffer).__name__} is no Box of an array")
        return TensorType(dt.of(buffer.array.dtype), buffer.array.shape)

    def allocation(self, buffer: Box) -> tuple[Hashable, int]:
        """Return the identity and size of the array that owns the memory, which views share."""
        owner = buffer.array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        return id(owner), owner.nbytes

    def synchronize(self) -> None:
        """Do nothing: kernels have run when they return."""

    def memory(self) -> Mapping[str, int]:
        """Return nothing: there is no pool whose figures could be told."""
        return {}

    def close(self) -> None:
        """Do nothing: the boxes go with their tensors."""
