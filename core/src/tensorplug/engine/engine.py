"""The engine: the open devices, and the way of values to them.

``engine.path`` has the way of calls: ``dispatch`` runs cached native plans itself, and leaves all
other calls to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.dispatch.commitment import commit
from tensorplug.dispatch.handlers import Handlers
from tensorplug.dispatch.observer import notify
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine import operands
from tensorplug.engine.backend_source import BackendSource, Opened
from tensorplug.engine.devices import Devices
from tensorplug.engine.path import Path
from tensorplug.errors import DTypeError
from tensorplug.ops.elementwise.casting import CAST
from tensorplug.tensors.variable import Variable, alias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.device import Device
    from tensorplug.dispatch.observer import Observer
    from tensorplug.engine.registry import Registry
    from tensorplug.engine.settings import Fallback

__all__ = ["BackendSource", "Engine", "Opened"]

NO_HANDLERS: Final = Handlers()


class Engine(Path):
    """Owns the registry and the open devices, and runs kernels. Tests build their own engines.

    Args:
        source: of the backends.
        registry: of the kernels, gradients and decompositions.
        prefer: backend names to try first, in order, if none was set.
        fallback: the policy if the active backend cannot run a kernel.
        wait_limit: the most seconds for which a call waits for a device; None: without limit.
        observers: wrap every kernel that this engine runs.
        handlers: of the layers above.

    """

    def __init__(
        self,
        source: BackendSource,
        registry: Registry,
        prefer: Sequence[str] = (),
        fallback: Fallback = "warn",
        *,
        wait_limit: float | None = None,
        observers: Sequence[Observer] = (),
        handlers: Handlers = NO_HANDLERS,
    ) -> None:
        self.registry = registry
        self.devices: Devices = Devices(source, registry, prefer, wait_limit)
        self.fallback: Fallback = fallback
        self.observers: tuple[Observer, ...] = tuple(observers)
        self.handlers: Handlers = handlers

    # Devices --------------------------------------------------------------------------

    def open(self, name: str | None) -> Device:
        """Return the device called ``name``, opening it if necessary; None: the active one."""
        return self.devices.active if name is None else self.devices.open(name)

    def follow(self, context: Context) -> None:
        """Set ``context.plans`` to those of the active device, now and when it changes."""
        self.devices.follow(context)

    # Tensors --------------------------------------------------------------------------

    def convert(
        self,
        context: Context,
        value: Any,
        dtype: DType | None,
        what: str,
        *,
        device: str | None = None,
        copy: bool | None = True,
    ) -> Tensor:
        """Return ``value`` as a live tensor committed to ``device``; see ``EngineProtocol``.

        Raises:
            DTypeError: the device does not support the dtype.
            CopyNeededError: ``copy`` is False, but the device does not use host memory.
            DisposedError, BackendClosedError: a tensor was disposed, or its backend was closed.

        """
        if isinstance(value, Tensor):
            if device is None:
                tensor = self._to_context(context, value, what)
            else:
                tensor = self._place(context, value, self.devices.named(device))
            if dtype is None or tensor.dtype is dtype:
                return tensor
            cast: Tensor = self.run(context, CAST, (tensor,), {"dtype": dtype})
            return cast
        target = self.devices.of(context) if device is None else self.devices.named(device)
        if copy and device is None:
            tensor = operands.import_value(value, dtype, target, what)
        else:
            tensor = operands.import_array(value, target, what, copy=copy)
        tensor = self._adopt(context, tensor if device is None else commit(tensor))
        for observer in self._observers(context):
            observer.uploaded(tensor)
        return tensor

    def _to_context(self, context: Context, value: Tensor, what: str) -> Tensor:
        """Return a tensor, or the contents of a variable, on the context's device or its own."""
        tensor = self._adopt(context, alias(value)) if isinstance(value, Variable) else value
        device, placement = self.devices.of(context), tensor._placement
        stays = placement.committed and not placement.device.closed
        if not stays and not device.can_use(placement):
            tensor = self._adopt(context, operands.transfer_input(tensor, device, what))
            notify(self._observers(context), "transferred", tensor)
        return tensor

    def _place(self, context: Context, tensor: Tensor, target: Device) -> Tensor:
        """Return a tensor committed to ``target``, still connected to the tape."""
        tensor = alias(tensor) if isinstance(tensor, Variable) else tensor
        target = tensor._live().beside(target)
        if tensor._placement.device is target:
            placed = commit(tensor)
            return tensor if placed is tensor else self._adopt(context, placed)
        if target.home(tensor.dtype) is not target:
            raise DTypeError(operands.unsupported(tensor.type, target))
        moved = self._adopt(context, commit(operands.transfer(tensor, target)))
        if context.recording is not None and tensor._node is not None:
            moved._node = context.recording.moved(tensor)
        notify(self._observers(context), "transferred", moved)
        return moved

    def constant(
        self, context: Context, spec: KernelSpec, position: int, value: Any, peer: Tensor
    ) -> Tensor:
        """Return numbers, input ``position`` of a call, as a cached tensor.

        ``value`` is a scalar, whose dtype follows that of ``peer``, or a tuple of integers.
        """
        device = self.devices.of(context)
        if peer._placement.committed:
            device = device.beside(peer._placement.device.root)
        if value.__class__ is tuple:
            return operands.index_constant(device, value)
        return operands.scalar_constant(device, spec, position, value, peer.dtype)

    def _observers(self, context: Context) -> tuple[Observer, ...]:
        """Return the observers of the context, then those of the engine."""
        return (*context.observers, *self.observers)

    @staticmethod
    def _adopt(context: Context, tensor: Tensor) -> Tensor:
        if context.scope is not None:
            context.scope.adopt(tensor)
        return tensor
