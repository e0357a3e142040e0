"""The engine: runs kernels on the devices that are open.

A call is found in the plan cache, or resolved, run, checked against its spec and then cached.
``dispatch`` handles the plain hits itself; everything else comes here.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tensorplug import dispatch as seam
from tensorplug import observation, operands, plans
from tensorplug.devices import BackendSource, Devices, Opened
from tensorplug.ops.elementwise import CAST
from tensorplug.promotion import Promotion
from tensorplug.tape import record
from tensorplug.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from tensorplug.device import Device
    from tensorplug.dispatch import Frame
    from tensorplug.dtypes import DType
    from tensorplug.observation import Observer
    from tensorplug.registry import Registry
    from tensorplug.settings import Fallback
    from tensorplug.spec import KernelSpec

__all__ = ["BackendSource", "Engine", "Opened"]


class Engine(Devices):
    """Registries, open devices and the way a kernel is run. Tests build their own.

    Args:
        source: gives the backends.
        registry: the kernels, gradients and decompositions known so far.
        prefer: backend names to try first, in order, when none was set.
        fallback: what happens when the active backend has no way to run a kernel.
        debug: compare the result of every call with its spec, not only of a plan's first.
        observers: stand around every kernel that this engine runs.

    """

    def __init__(
        self,
        source: BackendSource,
        registry: Registry,
        prefer: Sequence[str] = (),
        fallback: Fallback = "warn",
        *,
        debug: bool = False,
        observers: Sequence[Observer] = (),
    ) -> None:
        super().__init__(source, registry, prefer)
        self.fallback: Fallback = fallback
        self.debug = debug
        self.observers = tuple(observers)

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
        tensor = self._adopt(frame, operands.outside(value, dtype, device, what))
        for observer in (*frame.observers, *self.observers):
            observer.uploaded(tensor)
        return tensor

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
        observers = (*frame.observers, *self.observers)
        if observers:
            for each in _made(inputs, tensors):
                for observer in observers:
                    observer.uploaded(each)
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
        outputs: list[Tensor]
        if observers:
            run = partial(plan.execute, tensors)
            outputs = observation.execute(observers, plan, tensors, run)
        else:
            outputs = plan.execute(tensors)
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
        direct = direct and not plan.spec.several and not self.debug and not self.observers
        cache = device.plans if direct else device.detours
        with device.lock:
            if plan.state is self.registry.state and not device.closed:
                device.remember(cache, key, plan)

    def constant(
        self, frame: Frame, spec: KernelSpec, position: int, value: Any, peer: Tensor
    ) -> Tensor:
        """Return a Python number, input ``position`` of a call beside ``peer``, as a tensor."""
        return operands.weak(self.device_of(frame), spec, position, value, peer.dtype)


def _made(given: Sequence[Any], tensors: Sequence[Any]) -> Iterator[Tensor]:
    """Yield the tensors that stand where the caller gave something else than a tensor."""
    for before, after in zip(given, tensors, strict=True):
        if isinstance(after, list):
            yield from _made(before, after)
        elif after is not None and not isinstance(before, Tensor):
            yield after


def _types(given: Any) -> Any:
    if given is None:
        return None
    return [each.type for each in given] if isinstance(given, list) else given.type
