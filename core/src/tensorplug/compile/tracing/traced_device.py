"""The device that replaces a real one in the context while a function is traced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tensorplug.compile.tracing.values import Value, error, needs_data
from tensorplug.contract.tensor_types import WatchedType, unwatched
from tensorplug.dispatch.device import Placement
from tensorplug.engine.stand_ins import StandInBackend, StandInDevice
from tensorplug.errors import DeviceMismatchError

if TYPE_CHECKING:
    import numpy as np

    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.device import Device


class Tracing(Protocol):
    """What the device needs from its trace."""

    real: Device
    finished: bool
    committed: bool
    sizes_read: set[int]


class _TracedBackend(StandInBackend):
    """The backend of a traced device: the data of constants can be read, that of values cannot."""

    def __init__(self, trace: Tracing) -> None:
        super().__init__(trace.real)
        self._trace = trace

    def type_of(self, buffer: Any) -> TensorType | None:
        return buffer.placement.type if isinstance(buffer, Value) else None

    def read(self, buffer: Any) -> np.ndarray[Any, Any]:
        type_ = self.type_of(buffer)
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


class TracedDevice(StandInDevice):
    """Replaces a real device while a function is traced."""

    __slots__ = ("_watched",)

    def __init__(self, trace: Tracing) -> None:
        super().__init__(trace.real, _TracedBackend(trace), trace)
        self._watched: dict[TensorType, Placement] = {}

    def placement(self, type_: TensorType, *, committed: bool = False) -> Placement:  # noqa: ARG002  # see below
        """Return the placement of ``type_``; the trace says whether all results are committed.

        Its type notes which sizes are read.
        """
        plain = unwatched(type_)
        known = self._watched.get(plain)
        if known is None:
            made = Placement(self, WatchedType(plain, self.interpreter.sizes_read))
            known = self._watched.setdefault(plain, made)
        return known

    def forget_plans(self) -> None:
        """Drop every plan and placement: the trace has ended."""
        super().forget_plans()
        self._watched.clear()

    def beside(self, device: Device) -> Device:
        """Return this device for the real one below: a program runs on one device.

        Raises:
            DeviceMismatchError: ``device`` is another real one.

        """
        if not device.is_real or device.host is None:
            return device
        if device is not self.root:
            raise DeviceMismatchError(
                f"a compiled function that runs on {self.root.name!r} uses a tensor that was "
                f"placed on {device.name!r}; move it, or the arguments, with .to before the call",
                device.name,
            )
        self.real.beside(device)
        self.interpreter.committed = True
        return self

    def can_use(self, placement: Placement) -> bool:
        """Return whether a tensor may be an operand, also one of a trace around this one."""
        device = placement.device
        if isinstance(device, TracedDevice) and not device.interpreter.finished:
            return device.real is self.real
        return super().can_use(placement)
