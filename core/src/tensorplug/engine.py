"""The engine: opens devices and runs kernels on them.

A call is found in the plan cache, or resolved, run, checked against its spec and then cached.
``dispatch`` handles the plain hits itself; everything else comes here.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

from tensorplug import dispatch as seam
from tensorplug import operands, plans
from tensorplug.device import Device
from tensorplug.errors import (
    ArgumentError,
    BackendClosedError,
    BackendNotInstalledError,
    TensorplugError,
)
from tensorplug.ops.elementwise import CAST
from tensorplug.promotion import Promotion
from tensorplug.tape import record
from tensorplug.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from tensorplug.backend import Backend
    from tensorplug.dispatch import Frame
    from tensorplug.dtypes import DType
    from tensorplug.registry import Owner, Registry
    from tensorplug.settings import Fallback
    from tensorplug.spec import KernelSpec
    from tensorplug.tables import KernelTable

__all__ = ["BackendSource", "Engine", "Opened"]


@dataclass(frozen=True, slots=True)
class Opened:
    """What a source gives for a backend that it opened: kernels with the owner of each table."""

    backend: Backend
    owner: Owner
    kernels: tuple[tuple[Owner, KernelTable], ...]


class BackendSource(Protocol):
    """Where an engine's backends come from: the installed plugins, or a test's own."""

    def names(self) -> Sequence[str]:
        """Return the names that can be asked for, the preferred one first."""

    def open(self, name: str, device: str | None) -> Opened:
        """Open a backend.

        Raises:
            BackendNotInstalledError, BackendUnavailableError, PluginLoadError,
            PluginVersionError, PluginCollisionError: each saying what to do.

        """


class Engine:
    """Registries, open devices and the way a kernel is run. Tests build their own.

    Args:
        source: gives the backends.
        registry: the kernels, gradients and decompositions known so far.
        prefer: backend names to try first, in order, when none was set.
        fallback: what happens when the active backend has no way to run a kernel.
        debug: compare the result of every call with its spec, not only of a plan's first.

    """

    def __init__(
        self,
        source: BackendSource,
        registry: Registry,
        prefer: Sequence[str] = (),
        fallback: Fallback = "warn",
        *,
        debug: bool = False,
    ) -> None:
        self.source = source
        self.registry = registry
        self.fallback: Fallback = fallback
        self.debug = debug
        self._prefer = tuple(prefer)
        self._lock = threading.RLock()
        self._devices: dict[str, Device] = {}
        self._registered: set[str] = set()  # the backends whose kernels were taken
        self._active: Device | None = None
        self._followers: WeakSet[Frame] = WeakSet()
        registry.on_change(self._forget_plans)

    # Devices --------------------------------------------------------------------------

    @property
    def device(self) -> Device:
        """The process-wide active device, opened at first use."""
        return self._active or self._choose()

    def _choose(self) -> Device:
        with self._lock:
            if self._active is None:
                self.set_device(self._first_that_opens())
            assert self._active is not None
            return self._active

    def _first_that_opens(self) -> Device:
        names = self._prefer or self.source.names()
        if not names:
            raise BackendNotInstalledError(
                "no backend is installed. Try: pip install tensorplug-cpu"
            )
        refused: list[TensorplugError] = []
        for name in names:
            try:
                return self.open(name)
            except TensorplugError as error:
                refused.append(error)
        if len(refused) == 1:
            raise refused[0]
        listed = "\n".join(f"- {error}" for error in refused)
        raise type(refused[0])(f"none of the backends could be opened:\n{listed}")

    def device_of(self, frame: Frame) -> Device:
        """Return the device on which kernels run in ``frame``.

        Raises:
            BackendClosedError: a ``use_backend`` around it names one closed since.

        """
        device = frame.device or self.device
        if device.closed:
            raise BackendClosedError(f"backend {device.name!r} is in use here, but was closed")
        return device

    def set_device(self, device: Device) -> None:
        """Make ``device`` the process-wide active one.

        Raises:
            BackendClosedError: it was closed since it was opened, by another thread perhaps.

        """
        with self._lock:
            if device.closed:
                raise BackendClosedError(f"backend {device.name!r} was closed")
            self._active = device
            for frame in self._followers:
                frame.plans = device.plans

    def follow(self, frame: Frame) -> None:
        """Keep ``frame.plans`` those of the active device, now and when it changes."""
        with self._lock:
            self._followers.add(frame)
            if self._active is not None:
                frame.plans = self._active.plans

    def open(self, name: str) -> Device:
        """Return the open device called ``name`` (``"opencl"`` or ``"opencl:1"``), opening it.

        Raises:
            ArgumentError: ``name`` is no text, or ends with a colon. Besides, what
                ``BackendSource.open`` raises.

        """
        if not isinstance(name, str):
            raise ArgumentError(f"a backend is asked for by name, such as 'cpu', not {name!r}")
        found = self._devices.get(name)
        if found is not None:
            return found
        backend_name, colon, number = name.partition(":")
        if colon and not number:
            raise ArgumentError(f"{name!r} names no device after the colon")
        with self._lock:
            if name not in self._devices:
                opened = self.source.open(backend_name, number or None)
                self._register(backend_name, opened)
                self._devices[name] = Device(name, backend_name, opened.backend, opened.owner)
            return self._devices[name]

    def _register(self, backend_name: str, opened: Opened) -> None:
        if backend_name in self._registered:
            return  # for another device of that backend, or for one since closed
        handles = []
        try:
            for owner, table in opened.kernels:
                pairs = [(backend_name, entry) for entry in table]
                handles.append(self.registry.add(owner, kernels=pairs))
        except TensorplugError:
            for handle in handles:
                handle.remove()
            opened.backend.close()
            raise
        self._registered.add(backend_name)

    def close(self, name: str) -> None:
        """Close the device called ``name``; its tensors raise from now on."""
        with self._lock:
            device = self._devices.pop(name, None)
            if device is None:
                raise ArgumentError(f"no open device is called {name!r}")
            if self._active is device:  # first, so that who asks now gets another one
                self._active = None
                for frame in self._followers:
                    frame.plans = {}
            device.closed = True
            device.forget_plans()
            self._forget_plans()  # those of other devices that fall back to this one
            device.constants.clear()
            device.backend.close()

    def devices(self) -> list[Device]:
        """Return the open devices."""
        return list(self._devices.values())

    def fallback_devices(self, home: Device) -> Iterator[Device]:
        """Yield devices of other backends, open ones first, then those that open now."""
        tried = {home.backend_name}
        for device in self.devices():
            if device.backend_name not in tried:
                tried.add(device.backend_name)
                yield device
        for name in self.source.names():
            if name not in tried:
                tried.add(name)
                try:
                    yield self.open(name)
                except TensorplugError:
                    continue  # listed with its own error by backends() and doctor

    def _forget_plans(self) -> None:
        for device in self.devices():
            device.forget_plans()

    # Tensors --------------------------------------------------------------------------

    def convert(self, frame: Frame, value: Any, dtype: DType | None, what: str) -> Tensor:
        """Return ``value`` as a live tensor; a tensor stays where it is unless foreign."""
        device = self.device_of(frame)
        if isinstance(value, Tensor):
            tensor = value
            if value._placement.device is not device:
                tensor = self._adopt(frame, operands.bring(value, device, what))
            if dtype is None or tensor.dtype is dtype:
                return tensor
            cast: Tensor = self.run(frame, CAST, (tensor,), {"dtype": dtype})
            return cast
        return self._adopt(frame, operands.outside(value, dtype, device, what))

    def move(self, tensor: Tensor, device: str) -> Tensor:
        """Return ``tensor`` on the device called ``device``, keeping its place on the tape."""
        target = self.open(device)
        if tensor._placement.device is target:
            return tensor
        return self._adopt(seam.current(), operands.transfer(tensor, target))

    @staticmethod
    def _adopt(frame: Frame, tensor: Tensor) -> Tensor:
        if frame.scope is not None:
            frame.scope.adopt(tensor)
        return tensor

    # Kernels --------------------------------------------------------------------------

    def run(
        self,
        frame: Frame,
        spec: KernelSpec,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> Any:
        """Run one kernel; return its output tensor, or a list if its spec has several.

        Raises:
            ArgumentError, ShapeError, DTypeError: the call does not fit the spec.
            DisposedError, BackendClosedError: an input's data is gone.
            KernelNotFoundError: no way to run it here.
            KernelOutputError: the kernel did not return what its spec infers.

        """
        device = self.device_of(frame)
        tensors = operands.operands(device, spec, inputs)
        key = operands.key(spec, tensors, attributes)
        plan: plans.Plan | Promotion = (
            device.plans.get(key)
            or device.detours.get(key)
            or self._plan(device, spec, tensors, attributes)
        )
        if isinstance(plan, Promotion):
            if not plan.published:
                self._publish(device, key, plan)
            return self.run(frame, spec, plan.apply(self, frame, tensors), attributes)
        outputs: list[Tensor] = plan.execute(tensors)
        if self.debug or not plan.published:
            plan.verify(outputs)
        if not plan.published:
            self._publish(device, key, plan)
        if frame.watched:
            self.watch(frame, plan, tensors, outputs)
        return outputs if spec.several else outputs[0]

    def watch(
        self, frame: Frame, plan: plans.Plan, inputs: Sequence[Any], outputs: Sequence[Tensor]
    ) -> None:
        """Show what a plan made to the frame's tape and scope."""
        if frame.recording is not None and plan.taped:
            record(plan, inputs, outputs)
        if frame.scope is not None:
            for tensor in outputs:
                frame.scope.adopt(tensor)

    def explain(
        self,
        spec: KernelSpec,
        device: Device,
        types: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> tuple[plans.Plan, list[plans.Step]]:
        """Resolve a call without running it; return the plan and the steps that were tried.

        ``types`` are promoted first, as the call's inputs would be.
        """
        dtype = spec.promoted(types) if len(types) == len(spec.declared) else None
        if dtype is not None:
            types = Promotion(spec, dtype, self.registry.state).promoted(types)
        return self._resolved(spec, device, types, attributes)

    def _resolved(
        self,
        spec: KernelSpec,
        device: Device,
        types: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> tuple[plans.Plan, list[plans.Step]]:
        canonical, outputs = spec.resolve(types, attributes)
        plan = plans.Plan(spec, canonical, device, types, outputs, self.registry.state)
        plans.check_dtypes(plan)
        return plan, plans.resolve(self, plan)

    def _plan(
        self,
        device: Device,
        spec: KernelSpec,
        tensors: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> plans.Plan | Promotion:
        types = [_types(each) for each in tensors]
        dtype = spec.promoted(types)
        if dtype is not None:
            promotion = Promotion(spec, dtype, self.registry.state)
            if promotion.needed(types):
                return promotion
        self.registry.check(spec)
        return self._resolved(spec, device, types, attributes)[0]

    def _publish(self, device: Device, key: Hashable | None, plan: plans.Plan | Promotion) -> None:
        """Cache a plan, unless the registry has changed since it was resolved."""
        plan.published = True
        if key is None:
            return
        # `dispatch` runs by itself what has one output, and compares it with nothing.
        direct = type(plan) is plans.Plan and plan.how == "native"
        direct = direct and not plan.spec.several and not self.debug
        cache = device.plans if direct else device.detours
        with device.lock:
            if plan.state is self.registry.state and not device.closed:
                device.remember(cache, key, plan)

    def constant(
        self, frame: Frame, spec: KernelSpec, position: int, value: Any, peer: Tensor
    ) -> Tensor:
        """Return a Python number, input ``position`` of a call beside ``peer``, as a tensor."""
        return operands.weak(self.device_of(frame), spec, position, value, peer.dtype)


def _types(given: Any) -> Any:
    if given is None:
        return None
    return [each.type for each in given] if isinstance(given, list) else given.type
