"""Where tensors live whose backend was removed: in the host's memory, without any kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract.owner import Owner
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.device import Device

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from tensorplug.contract.dtypes import DType

__all__ = ["NAME", "HostStorage", "open_host"]

NAME = "host"
Array = np.ndarray[Any, Any]


class HostStorage:
    """A ``Backend`` whose buffers are NumPy arrays that nobody writes into.

    A kernel that gets a tensor from here copies it to its own device first.
    """

    name = NAME
    device = "the host's memory"
    survives_fork = True

    @property
    def dtypes(self) -> frozenset[DType]:
        """All of them."""
        return dt.ANY

    def from_host(self, array: Array) -> Array:
        """Return a copy."""
        return np.array(array)

    def to_host(self, buffer: Array) -> Array:
        """Return the buffer itself."""
        return buffer

    def share_from_host(self, array: Array) -> Array:
        """Return the array itself."""
        return array

    def share_to_host(self, buffer: Array) -> Array:
        """Return the buffer itself."""
        return buffer

    def describe(self, buffer: Array) -> TensorType:
        """Return dtype and shape."""
        return TensorType(dt.of(buffer.dtype), buffer.shape)

    def allocation(self, buffer: Array) -> tuple[Hashable, int]:
        """Return the identity of what owns the memory, and the array's size in bytes."""
        owner: Any = buffer
        while getattr(owner, "base", None) is not None:
            owner = owner.base
        return id(owner), buffer.nbytes

    def synchronize(self) -> None:
        """Do nothing: there is never anything to wait for."""

    def memory(self) -> Mapping[str, int]:
        """Return nothing: the process's memory is not ours alone."""
        return {}

    def close(self) -> None:
        """Do nothing: the arrays are freed when the last tensor dies."""


def open_host() -> Device:
    """Return a device of its own for an engine."""
    return Device(NAME, NAME, HostStorage(), Owner("tensorplug"))
