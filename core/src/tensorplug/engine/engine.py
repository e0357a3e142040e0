"""The engine: runs kernels on the devices that are open.

A call is found in the plan cache, or resolved, run, checked against its spec and then cached.
``dispatch`` handles the plain hits itself; everything else comes here.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tensorplug.dispatch import host_values
from tensorplug.dispatch.observer import execute, notify, promote
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine import operands, plans
from tensorplug.engine.devices import BackendSource, Devices, Opened
from tensorplug.engine.promotion import Promotion
from tensorplug.errors import DTypeError
from tensorplug.ops.elementwise import CAST
from tensorplug.tensors.variable import Variable, alias

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.device import Device
    from tensorplug.dispatch.observer import Observer
    from tensorplug.engine.registry import Registry
    from tensorplug.engine.settings import Fallback

__all__ = ["BackendSource", "Engine", "Opened"]


class Engine:
    """Registries, open devices and the way a kernel is run. Tests build their own.

    Args:
        source: gives the backends.
        registry: the kernels, gradients and decompositions known so far.
        prefer: backend names to try first, in order, when none was set.
        fallback: what happens when the active backend has no way to run a kernel.
        observers: stand around every kernel that this engine runs.

    """

    def __init__(
        self,
        source: BackendSource,
        registry: Registry,
        prefer: Sequence[str] = (),
        fallback: Fallback = "warn",
        *,
        observers: Sequence[Observer] = (),
    ) -> None:
        self.registry = registry
        self.devices = Devices(source, registry, prefer)
        self.fallback: Fallback = fallback
        self.observers = tuple(observers)

    # Devices --------------------------------------------------------------------------

    def open(self, name: str | None) -> Device:
        """Return the device of that name, opening it if need be; None: the active one."""
        return self.devices.active if name is None else self.devices.open(name)

    def follow(self, context: Context) -> None:
        """Keep ``context.plans`` those of the active device, now and when it changes."""
        self.devices.follow(context)

    def fallback_devices(self, home: Device) -> Iterator[Device]:
        """Yield devices of other backends, open ones first, then those that open now."""
        return self.devices.fallback_devices(home)

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
        """Return ``value`` as a live tensor; a tensor stays where it is unless foreign.

        ``device``: None for the context's; ``"host"`` is the host's memory, where no kernel runs.
        ``copy`` concerns arrays: None shares their memory where the device can, False must.

        Raises:
            DTypeError: the device has no such dtype.
            CopyNeededError: ``copy`` is False, but the device does not share the host's memory.
            DisposedError, BackendClosedError: the data of a tensor is gone.

        """
        if isinstance(value, Tensor):
            tensor = self._here(context, value, what) if device is None else value
            if device is not None:
                tensor = self._moved(context, tensor, self.devices.named(device))
            if dtype is None or tensor.dtype is dtype:
                return tensor
            cast: Tensor = self.run(context, CAST, (tensor,), {"dtype": dtype})
            return cast
        target = self.devices.of(context) if device is None else self.devices.named(device)
        if copy and device is None:
            tensor = operands.outside(value, dtype, target, what)
        else:
            tensor = operands.received(value, target, what, copy=copy)
        self._adopt(context, tensor)
        for observer in self._observers(context):
            observer.uploaded(tensor)
        return tensor

    def _here(self, context: Context, value: Tensor, what: str) -> Tensor:
        """Return a tensor, or what a variable holds, on the context's device."""
        tensor = self._adopt(context, alias(value)) if isinstance(value, Variable) else value
        device = self.devices.of(context)
        if not device.can_use(tensor._placement):
            tensor = self._adopt(context, operands.bring(tensor, device, what))
            notify(self._observers(context), "transferred", tensor)
        return tensor

    def _moved(self, context: Context, tensor: Tensor, target: Device) -> Tensor:
        """Return a tensor on ``target``, with its place on the tape."""
        if tensor._placement.device is target:
            return tensor
        if target.home(tensor.dtype) is not target:
            raise DTypeError(operands.unsupported(tensor.type, target))
        moved = self._adopt(context, operands.transfer(tensor, target))
        notify(self._observers(context), "transferred", moved)
        return moved

    def constant(
        self, context: Context, spec: KernelSpec, position: int, value: Any, peer: Tensor
    ) -> Tensor:
        """Return numbers, input ``position`` of a call, as a tensor that is kept for next time.

        ``value`` is a Python number, which takes its dtype from ``peer``, or a tuple of integers.
        """
        device = self.devices.of(context)
        if value.__class__ is tuple:
            return operands.index_constant(device, value)
        return operands.weak(device, spec, position, value, peer.dtype)

    def _observers(self, context: Context) -> tuple[Observer, ...]:
        """Return who watches: those of the context around those of the engine."""
        return (*context.observers, *self.observers)

    @staticmethod
    def _adopt(context: Context, tensor: Tensor) -> Tensor:
        if context.scope is not None:
            context.scope.adopt(tensor)
        return tensor

    # Kernels --------------------------------------------------------------------------

    def run(
        self,
        context: Context,
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
        device = self.devices.of(context)
        tensors = operands.operands(device, spec, inputs)
        observers = (*context.observers, *self.observers) if device.trace is None else ()
        if observers:
            _announce(observers, inputs, tensors)
        key = operands.key(spec, tensors, attributes)
        plan: plans.Plan | Promotion = (
            device.plans.get(key)
            or device.slow_plans.get(key)
            or self._plan(device, spec, tensors, attributes)
        )
        if isinstance(plan, Promotion):
            if not plan.published:
                self._publish(device, key, plan)
            if not observers:
                return self.run(context, spec, plan.apply(self, context, tensors), attributes)
            run = partial(self._promoted, context, plan, tensors, attributes)
            return promote(observers, plan, tensors, run)
        outputs: list[Tensor]
        if observers:
            verified = partial(_verified, plan, tensors)
            outputs = execute(observers, plan, tensors, verified)
        else:
            outputs = plan.execute(tensors)
        if not plan.published:
            plan.verify(outputs)
            self._publish(device, key, plan)
        if context.watched:
            seen = plan if plan.static_shapes else plan.bound(outputs)
            context.record(seen, tensors, outputs)
            if observers:
                notify(observers, "recorded", plan, outputs)
        return outputs if spec.multiple_outputs else outputs[0]

    def _promoted(
        self,
        context: Context,
        promotion: Promotion,
        tensors: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> Any:
        return self.run(
            context, promotion.spec, promotion.apply(self, context, tensors), attributes
        )

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
        types = operands.types_of(tensors)
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
        # `dispatch` runs these by itself, and compares what comes out with nothing.
        direct = type(plan) is plans.Plan and plan.how == "native" and plan.static_shapes
        direct = direct and not self.observers
        cache = device.plans if direct else device.slow_plans
        with device.lock:
            if plan.state is self.registry.state and not device.closed:
                device.remember(cache, key, plan)


def _verified(plan: plans.Plan, tensors: Sequence[Any]) -> list[Tensor]:
    """Run a plan; at its first run compare the outputs with its spec before anybody looks."""
    outputs = plan.execute(tensors)
    if not plan.published:
        plan.verify(outputs)
    return outputs


def _announce(
    observers: Sequence[Observer], inputs: Sequence[Any], tensors: Sequence[Any]
) -> None:
    """Show the observers what was uploaded or brought from another device for a call."""
    for before, after in zip(inputs, tensors, strict=True):
        if isinstance(after, list):
            _announce(observers, before, after)
        elif after is before or host_values.is_scalar(before):
            continue  # a constant is the engine's
        elif isinstance(before, Tensor):
            if before._placement.device is not after._placement.device:  # a variable was read
                notify(observers, "transferred", after)
        else:
            for observer in observers:
                observer.uploaded(after)
