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
from tensorplug import dtypes as dt
from tensorplug import host, plans
from tensorplug.device import Device
from tensorplug.errors import (
    ArgumentError,
    BackendClosedError,
    BackendNotInstalledError,
    DisposedError,
    DTypeError,
    TensorplugError,
)
from tensorplug.ops.elementwise import CAST
from tensorplug.spec import TensorType
from tensorplug.tape import record
from tensorplug.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from tensorplug.backend import Backend
    from tensorplug.dispatch import Frame
    from tensorplug.dtypes import DType
    from tensorplug.registry import Owner, Registry, State
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

    """

    def __init__(
        self,
        source: BackendSource,
        registry: Registry,
        prefer: Sequence[str] = (),
        fallback: Fallback = "warn",
    ) -> None:
        self.source = source
        self.registry = registry
        self.fallback: Fallback = fallback
        self._prefer = tuple(prefer)
        self._lock = threading.RLock()
        self._devices: dict[str, Device] = {}
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

    def set_device(self, device: Device) -> None:
        """Make ``device`` the process-wide active one."""
        with self._lock:
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

        Raises: what ``BackendSource.open`` raises.
        """
        found = self._devices.get(name)
        if found is not None:
            return found
        backend_name, _, number = name.partition(":")
        with self._lock:
            if name not in self._devices:
                opened = self.source.open(backend_name, number or None)
                self._register(backend_name, opened)
                self._devices[name] = Device(name, backend_name, opened.backend, opened.owner)
            return self._devices[name]

    def _register(self, backend_name: str, opened: Opened) -> None:
        if any(each.backend_name == backend_name for each in self._devices.values()):
            return  # another device of that backend is open; its kernels serve both
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

    def close(self, name: str) -> None:
        """Close the device called ``name``; its tensors raise from now on."""
        with self._lock:
            device = self._devices.pop(name, None)
            if device is None:
                raise ArgumentError(f"no open device is called {name!r}")
            device.closed = True
            device.forget_plans()
            device.constants.clear()
            if self._active is device:
                self._active = None
                for frame in self._followers:
                    frame.plans = {}
            device.backend.close()

    def devices(self) -> list[Device]:
        """Return the open devices."""
        return list(self._devices.values())

    def fallback_devices(self, home: Device) -> Iterator[Device]:
        """Yield devices of other backends, open ones first, then those that open now."""
        tried = {home.backend_name}
        for device in [*self.devices(), None]:
            if device is not None and device.backend_name not in tried:
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

    def convert(self, frame: Frame, value: Any, dtype: DType | None) -> Tensor:
        """Return ``value`` as a live tensor; a tensor stays where it is unless foreign."""
        device = frame.device or self.device
        if isinstance(value, Tensor):
            tensor = value
            if value._placement.device is not device:
                tensor = self._bring(value, device, "the argument")
            if dtype is None or tensor.dtype is dtype:
                return tensor
            cast: Tensor = self.run(frame, CAST, (tensor,), {"dtype": dtype})
            return cast
        return self._adopt(frame, self.upload(host.as_array(value, dtype), device))

    def upload(self, array: Any, device: Device) -> Tensor:
        """Return a NumPy array as a tensor on ``device``.

        Raises:
            DTypeError: when the device has no such dtype.
            BackendMemoryError: when it has no room.

        """
        type_ = TensorType(dt.of(array.dtype), array.shape)
        if type_.dtype not in device.backend.dtypes:
            raise DTypeError(plans.unsupported(type_, device))
        return Tensor._of(device.backend.from_host(array), device.placement(type_))

    def move(self, tensor: Tensor, device: str) -> Tensor:
        """Return ``tensor`` on the device called ``device``, keeping its place on the tape."""
        target = self.open(device)
        if tensor._placement.device is target:
            return tensor
        return self._adopt(seam.current(), self.transfer(tensor, target))

    def transfer(self, tensor: Tensor, device: Device) -> Tensor:
        """Copy ``tensor`` to ``device`` through the host."""
        source = tensor._live()
        if source is device:
            return tensor
        moved = self.upload(source.backend.to_host(tensor._buffer), device)
        moved._node = tensor._node
        return moved

    def _bring(self, tensor: Tensor, device: Device, what: str) -> Tensor:
        """Return a tensor of another device here, counted; raise if its data is gone."""
        try:
            tensor._live()
        except (DisposedError, BackendClosedError) as error:
            raise type(error)(f"{what}: {error}") from None
        device.counters.transfers_in += 1
        return self.transfer(tensor, device)

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
            GradientNotFoundError: a tape records and the kernel lacks a rule.

        """
        device = frame.device or self.device
        tensors = self._operands(device, spec, inputs)
        key = _key(spec, tensors, attributes)
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
        if not plan.published:
            plan.verify(outputs)
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
        """Resolve a call without running it; return the plan and the steps that were tried."""
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
        return self.explain(spec, device, types, attributes)[0]

    def _publish(self, device: Device, key: Hashable, plan: plans.Plan | Promotion) -> None:
        """Cache a plan, unless the registry has changed since it was resolved."""
        plan.published = True
        native = type(plan) is plans.Plan and plan.how == "native"
        cache = device.plans if native else device.detours
        with device.lock:
            if plan.state is self.registry.state and not device.closed:
                device.remember(cache, key, plan)

    def _operands(self, device: Device, spec: KernelSpec, inputs: Sequence[Any]) -> list[Any]:
        """Return the inputs as live tensors on ``device`` (lists of them, None if absent)."""
        if len(inputs) != len(spec.declared):
            raise ArgumentError(
                f"{spec.name} takes {len(spec.declared)} inputs, got {len(inputs)}"
            )
        result: list[Any] = []
        weak = False
        for declared, value in zip(spec.declared, inputs, strict=True):
            if value.__class__ is Tensor and value._placement.device is device:
                result.append(value)
            elif value is None or host.is_scalar(value):
                weak = weak or value is not None
                result.append(value)
            else:
                what = f"{spec.name}: input {declared.name!r}"
                if declared.variadic and isinstance(value, list | tuple):
                    result.append([self._operand(device, each, what) for each in value])
                else:
                    result.append(self._operand(device, value, what))
        return self._fill_scalars(device, spec, result) if weak else result

    def _operand(self, device: Device, value: Any, what: str) -> Tensor:
        if isinstance(value, Tensor):
            if value._placement.device is device:
                return value
            return self._bring(value, device, what)
        try:
            return self.upload(host.as_array(value), device)
        except (ArgumentError, DTypeError) as error:
            raise type(error)(f"{what}: {error}") from None

    def _fill_scalars(self, device: Device, spec: KernelSpec, values: list[Any]) -> list[Any]:
        """Replace Python scalars by constants of the dtype they take beside the tensors."""
        peer: DType | None = None
        for name, each in zip(spec.input_names, values, strict=True):
            if name in spec.promote and isinstance(each, Tensor) and each.dtype is not peer:
                peer = each.dtype if peer is None else self._common(spec, peer, each.dtype)
        filled = []
        for name, value in zip(spec.input_names, values, strict=True):
            if value is None or isinstance(value, Tensor | list):
                filled.append(value)
                continue
            beside = peer if name in spec.promote else None
            # Equal numbers share a constant unless they differ in type or in the sign of zero;
            # a NaN equals nothing and is made anew.
            key = (value, value.__class__, beside, str(value) if value == 0 else "")
            constant = device.constants.get(key)
            if constant is None:
                constant = self._constant(device, f"{spec.name}: input {name!r}", value, beside)
                device.remember(device.constants, key, constant)
            filled.append(constant)
        return filled

    @staticmethod
    def _common(spec: KernelSpec, a: DType, b: DType) -> DType:
        try:
            return dt.promote((a, b))
        except DTypeError as error:
            raise DTypeError(f"{spec.name}: {error}") from None

    def _constant(
        self, device: Device, what: str, value: dt.Scalar, beside: DType | None
    ) -> Tensor:
        try:
            return self.upload(host.scalar(value, dt.of_scalar(value, beside)), device)
        except (ArgumentError, DTypeError) as error:
            raise type(error)(f"{what}: {error}") from None


class Promotion:
    """What a key leads to when some of a call's inputs must be cast to a common dtype first."""

    __slots__ = ("dtype", "published", "spec", "state")

    def __init__(self, spec: KernelSpec, dtype: DType, state: State) -> None:
        self.spec = spec
        self.dtype = dtype
        self.state = state
        self.published = False

    def needed(self, types: Sequence[Any]) -> bool:
        """Return whether any of the promoted inputs has another dtype."""
        return any(
            each is not None and any(one.dtype is not self.dtype for one in _listed(each))
            for name, each in zip(self.spec.input_names, types, strict=True)
            if name in self.spec.promote
        )

    def apply(self, engine: Engine, frame: Frame, tensors: Sequence[Any]) -> list[Any]:
        """Return the inputs with a Cast, on the tape as any other kernel, where one is due."""

        def cast(given: Any) -> Any:
            if given is None or (isinstance(given, Tensor) and given.dtype is self.dtype):
                return given
            if isinstance(given, list):
                return [cast(each) for each in given]
            return engine.run(frame, CAST, (given,), {"dtype": self.dtype})

        return [
            cast(each) if name in self.spec.promote else each
            for name, each in zip(self.spec.input_names, tensors, strict=True)
        ]


def _listed(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given]


def _types(given: Any) -> Any:
    if given is None:
        return None
    return [each.type for each in given] if isinstance(given, list) else given.type


def _key(spec: KernelSpec, tensors: Sequence[Any], attributes: Mapping[str, Any]) -> Hashable:
    """Return what names a plan; for calls without attributes the same as in ``dispatch``."""
    placements: list[Any] = []
    for each in tensors:
        if each.__class__ is Tensor:
            placements.append(each._placement)
        elif each is None:
            placements.append(None)
        else:
            placements.append(tuple([one._placement for one in each]))
    if not attributes:
        return (spec, *placements)
    items: tuple[Any, ...] = tuple(attributes.items())
    if spec.exact_attributes:
        items += tuple(repr(attributes.get(name)) for name in spec.exact_attributes)
    key = (spec, *placements, items)
    try:
        hash(key)
    except TypeError:
        return (spec, *placements, _frozen(items))
    return key


def _frozen(value: Any) -> Hashable:
    """Return lists as tuples at any depth, and what still cannot be hashed by its text."""
    if isinstance(value, list | tuple):
        return tuple(_frozen(each) for each in value)
    try:
        hash(value)
    except TypeError:
        return (type(value), repr(value))
    return value  # type: ignore[no-any-return]  # it was just hashed
