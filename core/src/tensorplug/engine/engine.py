"""The engine: runs kernels on the devices that are open.

A call is found in the plan cache, or resolved, run, checked against its spec and then cached.
``dispatch`` handles the plain hits itself; everything else comes here.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tensorplug.autodiff.tape import record, twin
from tensorplug.dispatch import host_values
from tensorplug.dispatch.context import current_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine import operands, plans
from tensorplug.engine.devices import BackendSource, Devices, Opened
from tensorplug.engine.promotion import Promotion
from tensorplug.errors import DTypeError
from tensorplug.observers import observation
from tensorplug.ops.elementwise import CAST
from tensorplug.tensors.variable import Variable, Variables

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import numpy as np

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.registry import Registry
    from tensorplug.engine.settings import Fallback
    from tensorplug.observers.observation import Observer

__all__ = ["BackendSource", "Engine", "Opened"]


class Engine(Devices):
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
        super().__init__(source, registry, prefer)
        self.fallback: Fallback = fallback
        self.observers = tuple(observers)
        self.variables = Variables()

    # Tensors --------------------------------------------------------------------------

    def convert(self, context: Context, value: Any, dtype: DType | None, what: str) -> Tensor:
        """Return ``value`` as a live tensor; a tensor stays where it is unless foreign."""
        device = self.device_of(context)
        if isinstance(value, Tensor):
            tensor = self._adopt(context, twin(value)) if isinstance(value, Variable) else value
            if not device.houses(tensor._placement):
                tensor = self._adopt(context, operands.bring(tensor, device, what))
                observation.notify(self._observers(context), "transferred", tensor)
            if dtype is None or tensor.dtype is dtype:
                return tensor
            cast: Tensor = self.run(context, CAST, (tensor,), {"dtype": dtype})
            return cast
        tensor = self._adopt(context, operands.outside(value, dtype, device, what))
        for observer in self._observers(context):
            observer.uploaded(tensor)
        return tensor

    def receive(
        self,
        context: Context,
        array: np.ndarray[Any, Any],
        device: str | None,
        what: str,
        *,
        copy: bool | None,
    ) -> Tensor:
        """Return an array as a tensor on the device called ``device``, sharing its memory.

        Copied if ``copy`` is True, or the device cannot share (an error if ``copy`` is False).
        """
        target = self.device_of(context) if device is None else self._place(device)
        tensor = self._adopt(context, operands.received(array, target, what, copy=copy))
        for observer in self._observers(context):
            observer.uploaded(tensor)
        return tensor

    def move(self, tensor: Tensor, device: str) -> Tensor:
        """Return ``tensor`` on the device called ``device``, keeping its place on the tape.

        ``"host"`` is the host's memory, where no kernel runs.
        """
        target = self._place(device)
        if tensor._placement.device is target:
            return tensor
        if target.home(tensor.dtype) is not target:
            raise DTypeError(operands.unsupported(tensor.type, target))
        context = current_context()
        moved = self._adopt(context, operands.transfer(tensor, target))
        observation.notify(self._observers(context), "transferred", moved)
        return moved

    def _place(self, name: str) -> Device:
        return self.host if name == self.host.name else self.open(name)

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
        device = self.device_of(context)
        tensors = operands.operands(device, spec, inputs)
        observers = (*context.observers, *self.observers) if device.trace is None else ()
        if observers:
            _announce(observers, inputs, tensors)
        key = operands.key(spec, tensors, attributes)
        plan: plans.Plan | Promotion = (
            device.plans.get(key)
            or device.detours.get(key)
            or self._plan(device, spec, tensors, attributes)
        )
        if isinstance(plan, Promotion):
            if not plan.published:
                self._publish(device, key, plan)
            if not observers:
                return self.run(context, spec, plan.apply(self, context, tensors), attributes)
            run = partial(self._promoted, context, plan, tensors, attributes)
            return observation.promote(observers, plan, tensors, run)
        outputs: list[Tensor]
        if observers:
            verified = partial(_verified, plan, tensors)
            outputs = observation.execute(observers, plan, tensors, verified)
        else:
            outputs = plan.execute(tensors)
        if not plan.published:
            plan.verify(outputs)
            self._publish(device, key, plan)
        if context.watched:
            seen = plan if plan.settled else plan.bound(outputs)
            self.watch(context, seen, tensors, outputs)
            if observers:
                observation.notify(observers, "recorded", plan, outputs)
        return outputs if spec.several else outputs[0]

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

    def watch(
        self, context: Context, plan: plans.Plan, inputs: Sequence[Any], outputs: Sequence[Tensor]
    ) -> None:
        """Show what a plan made to the context's tape and scope."""
        if context.recording is not None and plan.taped:
            record(plan, inputs, outputs)
        if context.scope is not None:
            for tensor in outputs:
                context.scope.adopt(tensor)

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
        direct = type(plan) is plans.Plan and plan.how == "native" and plan.settled
        direct = direct and not self.observers
        cache = device.plans if direct else device.detours
        with device.lock:
            if plan.state is self.registry.state and not device.closed:
                device.remember(cache, key, plan)

    def constant(
        self, context: Context, spec: KernelSpec, position: int, value: Any, peer: Tensor
    ) -> Tensor:
        """Return a Python number, input ``position`` of a call beside ``peer``, as a tensor."""
        return operands.weak(self.device_of(context), spec, position, value, peer.dtype)

    def places(self, context: Context, numbers: tuple[int, ...]) -> Tensor:
        """Return Python's integers, one index for several axes, as a tensor of rank 1."""
        return operands.places(self.device_of(context), numbers)

    def vary(self, model: plans.Plan, attributes: Mapping[str, Any]) -> plans.Plan | None:
        """Return the plan of the same call as ``model``, which has run, with other attributes."""
        return plans.varied(model, attributes)

    def file(self, context: Context, key: Hashable, plan: plans.Plan) -> None:
        """Let a native plan, which has run, be found under another key too."""
        device = plan.device
        if context.plans is device.plans:
            self._publish(device, key, plan)

    def overwrite(self, context: Context, tensor: Tensor, key: Any, value: Tensor) -> bool:
        """Write a tensor of the same dtype to ``tensor[key]``; say whether. See ``Runner``."""
        device = tensor._placement.device
        if device.overwrite is None or value._placement.device is not device:
            return False
        if context.recording is not None or context.observers or self.observers:
            return False
        return device.overwrite(tensor._buffer, key, value._buffer)


def _verified(plan: plans.Plan, tensors: Sequence[Any]) -> list[Tensor]:
    """Run a plan; at its first run compare the outputs with its spec before anybody looks."""
    outputs = plan.execute(tensors)
    if not plan.published:
        plan.verify(outputs)
    return outputs


def _announce(observers: Sequence[Observer], given: Sequence[Any], tensors: Sequence[Any]) -> None:
    """Show the observers what was uploaded or brought from another device for a call."""
    for before, after in zip(given, tensors, strict=True):
        if isinstance(after, list):
            _announce(observers, before, after)
        elif after is before or host_values.is_scalar(before):
            continue  # a constant is the engine's
        elif isinstance(before, Tensor):
            if before._placement.device is not after._placement.device:  # a variable was read
                observation.notify(observers, "transferred", after)
        else:
            for observer in observers:
                observer.uploaded(after)
