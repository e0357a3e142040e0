"""The device of logical tensors, which replaces a real one inside an interpreter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from tensorplug.dispatch import commitment
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.engine.operands import transfer
from tensorplug.engine.stand_ins import StandInBackend, StandInDevice

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.device import Device
    from tensorplug.dispatch.tensor import Tensor


class Carried(ABC):
    """What a logical tensor has as buffer: the physical tensors that carry it.

    ``call``: of the function that made it (``Context.call``). No other call may use it, though
    calls of one kind and size share their device.
    """

    __slots__ = ("call",)

    call: object

    @property
    @abstractmethod
    def tensors(self) -> tuple[Tensor | None, ...]:
        """The physical tensors."""


class _Backend(StandInBackend):
    """The backend of logical tensors: its interpreter knows what their buffers mean."""

    def __init__(self, real: Device, interpreter: Any) -> None:
        super().__init__(real)
        self._interpreter = interpreter

    def type_of(self, buffer: Any) -> TensorType | None:
        known: TensorType | None = None
        if isinstance(buffer, Carried):
            known = self._interpreter.type_of(buffer)
        return known

    def read(self, buffer: Any) -> np.ndarray[Any, Any]:
        data: np.ndarray[Any, Any] = self._interpreter.data(buffer)
        return data


class LogicalDevice(StandInDevice):
    """The device of logical tensors. Data from elsewhere become constants."""

    __slots__ = ()

    def __init__(self, real: Device, interpreter: Any) -> None:
        super().__init__(real, _Backend(real, interpreter), interpreter)

    def storage(self) -> Device:
        """Return the device of constants."""
        return self.real.storage()

    def beside(self, device: Device) -> Device:
        """Return that of logical tensors whose physical ones are on ``device``."""
        if not device.is_real:
            return device
        real = self.real.beside(device)
        return self if real is self.real else self.interpreter.on(real).device

    def carry(self, tensor: Tensor, device: Device) -> Tensor | None:
        """Return a logical tensor on that of the same interpreter for another real device."""
        mine, other = self.interpreter, device.interpreter
        if type(other) is not type(mine) or other.parameters != mine.parameters:
            return None
        return self._with_physical(tensor, other, lambda each: transfer(each, other.real))

    def commit(self, tensor: Tensor) -> Tensor:
        """Return a logical tensor, with what carries it, as one that was placed here."""
        return self._with_physical(tensor, self.interpreter, commitment.commit)

    def _with_physical(
        self, tensor: Tensor, other: Any, change: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return a logical tensor of ``other`` that is carried by the changed physical ones."""
        mine = self.interpreter
        outside = current_context().outside
        if outside is None:
            raise mine.escaped()
        with use_context(outside):
            physical = [change(each) for each in mine.lower([tensor])]
            logical: Tensor = other.lift(physical, [tensor.type], tensor._buffer.call)[0]
        logical._node = tensor._node
        return logical
