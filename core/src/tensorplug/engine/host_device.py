"""The host device: memory without kernels, for strings and tensors of removed backends."""

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


NAME = "host"
Array = np.ndarray[Any, Any]


class HostStorage:
    """A ``Backend`` without kernels, whose buffers are immutable NumPy arrays.

    Other devices copy a tensor from here before their kernels use it.
    """

    name = NAME
    device = "the host's memory"
    survives_fork = True

    @property
    def dtypes(self) -> frozenset[DType]:
        """All dtypes."""
        return dt.STORED

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
        """Return the identity of the memory's owner, and the array's size in bytes."""
        owner: Any = buffer
        while getattr(owner, "base", None) is not None:
            owner = owner.base
        return id(owner), buffer.nbytes

    def synchronize(self) -> None:
        """Do nothing: no work is ever pending."""

    def memory(self) -> Mapping[str, int]:
        """Return {}: other code uses the process's memory, too."""
        return {}

    def close(self) -> None:
        """Do nothing: an array is freed with its last tensor."""


def open_host() -> Device:
    """Return the host device of a new engine."""
    return Device(NAME, NAME, HostStorage(), Owner("tensorplug"))
