"""The device that replaces a real one in the context while a function is traced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tensorplug.compile.values import Value, error, needs_data
from tensorplug.dispatch.device import Device

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    import numpy as np

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.device import Placement

__all__ = ["TracedDevice"]


class Tracing(Protocol):
    """What the device needs from its trace."""

    real: Device
    finished: bool


class _TracedBackend:
    """The backend of a traced device: the data of constants can be read, that of values cannot."""

    survives_fork = True

    def __init__(self, trace: Tracing) -> None:
        self._trace = trace
        self._real = trace.real.backend

    @property
    def name(self) -> str:
        return self._real.name

    @property
    def device(self) -> str:
        return self._real.device

    @property
    def dtypes(self) -> frozenset[DType]:
        return self._real.dtypes

    def from_host(self, array: np.ndarray[Any, Any]) -> Any:
        return self._real.from_host(array)

    def to_host(self, buffer: Any) -> np.ndarray[Any, Any]:
        if not isinstance(buffer, Value):
            return self._real.to_host(buffer)
        type_ = buffer.placement.type
        if self._trace.finished:
            raise error(
                f"a tensor ({type_}) created while a function was traced is used after tracing, "
                "but has no data; return it from the function instead"
            )
        raise needs_data(
            f"the function reads the data of a tensor ({type_}) that depends on its arguments. "
            "Such a tensor has no data during tracing: numbers, conditions and shapes must not "
            "depend on it. Use where(...), or move this out of the compiled function",
            "it reads the values of a tensor",
        )

    def describe(self, buffer: Any) -> TensorType:
        if isinstance(buffer, Value):
            return buffer.placement.type
        return self._real.describe(buffer)

    def allocation(self, buffer: Any) -> tuple[Hashable, int]:
        return (id(buffer), 0) if isinstance(buffer, Value) else self._real.allocation(buffer)

    def synchronize(self) -> None:
        self._real.synchronize()

    def memory(self) -> Mapping[str, int]:
        return {}

    def close(self) -> None:
        """Do nothing: the real backend stays open."""


class TracedDevice(Device):
    """Replaces a real device while a function is traced."""

    __slots__ = ("real",)

    def __init__(self, trace: Tracing) -> None:
        real = trace.real
        super().__init__(
            real.name, real.backend_name, _TracedBackend(trace), real.owner, real.host
        )
        self.real = real
        self.trace = trace

    def placement(self, type_: TensorType) -> Placement:
        """Return the placement of ``type_`` here, with the type object of the real device."""
        return super().placement(self.real.placement(type_).type)

    def home(self, dtype: DType) -> Device | None:
        """Return this device, also for strings that the real one keeps in host memory."""
        return None if self.real.home(dtype) is None else self

    def can_use(self, placement: Placement) -> bool:
        """Return whether a tensor is on this device, or usable on the real one."""
        return placement.device is self or self.real.can_use(placement)
