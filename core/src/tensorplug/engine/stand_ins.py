"""Devices that replace a real one in the context, for tensors that are not buffers of its backend.

Tracing for programs (``compile.tracing``) and interpreters (``engine.interpreters``) put one into
the context. The ``interpreter`` of such a device decides what becomes of each call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from tensorplug.dispatch.device import Device

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    import numpy as np

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.device import Placement


class StandInBackend(ABC):
    """The backend of a device that stands in: it passes on what concerns real buffers."""

    survives_fork = True

    def __init__(self, real: Device) -> None:
        self._device = real
        self._real = real.backend

    @property
    def name(self) -> str:
        """The name of the real backend."""
        return self._real.name

    @property
    def device(self) -> str:
        """The description of its device."""
        return self._real.device

    @property
    def dtypes(self) -> frozenset[DType]:
        """The dtypes that it supports."""
        return self._real.dtypes

    @abstractmethod
    def type_of(self, buffer: Any) -> TensorType | None:
        """Return the type of what stands in for a buffer; None for a buffer of the backend."""

    @abstractmethod
    def read(self, buffer: Any) -> np.ndarray[Any, Any]:
        """Return the data of what stands in for a buffer, or raise."""

    def from_host(self, array: np.ndarray[Any, Any]) -> Any:
        """Return a buffer of the real backend."""
        return self._real.from_host(array)

    def to_host(self, buffer: Any) -> np.ndarray[Any, Any]:
        """Return the data, or raise as ``read`` does."""
        if self.type_of(buffer) is None:
            return self._device.read(buffer)
        return self.read(buffer)

    def describe(self, buffer: Any) -> TensorType:
        """Return dtype and shape."""
        return self.type_of(buffer) or self._real.describe(buffer)

    def allocation(self, buffer: Any) -> tuple[Hashable, int]:
        """Return the identity and the size of the memory: none for what stands in."""
        stands_in = self.type_of(buffer) is not None
        return (id(buffer), 0) if stands_in else self._real.allocation(buffer)

    def synchronize(self) -> None:
        """Wait for the real backend."""
        self._device.synchronize()

    def memory(self) -> Mapping[str, int]:
        """Return {}: the real backend says it."""
        return {}

    def close(self) -> None:  # noqa: B027  # not abstract
        """Do nothing: the real backend stays open."""


class StandInDevice(Device):
    """Replaces ``real`` in the context; ``interpreter`` decides what becomes of each call."""

    __slots__ = ("real",)

    def __init__(self, real: Device, backend: StandInBackend, interpreter: Any) -> None:
        super().__init__(real.name, real.backend_name, backend, real.owner, real.host)
        self.real: Device = real
        self.root: Device = real.root
        self.is_real: bool = False
        self.interpreter = interpreter

    def placement(self, type_: TensorType, *, committed: bool = False) -> Placement:
        """Return the placement of ``type_`` here, with the type object of the real device."""
        return super().placement(self.real.placement(type_).type, committed=committed)

    def home(self, dtype: DType) -> Device | None:
        """Return this device, also for strings that the real one keeps in host memory."""
        return None if self.real.home(dtype) is None else self

    def can_use(self, placement: Placement) -> bool:
        """Return whether a tensor is on this device, or usable on the real one."""
        return placement.device is self or self.real.can_use(placement)
