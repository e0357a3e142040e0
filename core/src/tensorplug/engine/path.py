"""The path of a kernel call for which ``dispatch`` finds no plan, from the top down.

``Path.run`` finds the device and makes the inputs live tensors there; then the plan of the call,
or the casts that must come before it, after which the call starts again. A call with a plan passes
a stack of handlers, which the modes of its context put there, the first one outermost::

    handlers.calls       compile: a program in the place of a decomposition
    record               the tape and the tidy scope
    observe              profilers, debug mode, traces
    execute              the engine: runs what the plan calls

A handler is one function of ``proceed``, which does what comes below it, and of the call. What a
plan calls is the business of its device's interpreter (``dispatch.eager``), asked once per plan: a
kernel on a real device; in a program, in vmap and in forward mode what these make of the call.
docs/adr/0055 has a picture.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from tensorplug.contract.dtypes import STORAGE
from tensorplug.contract.tensor_types import unwatched
from tensorplug.dispatch.context import current_context, innermost, use_context
from tensorplug.dispatch.observer import execute, notify, promote, report_inputs
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine import operands, plans, resolution
from tensorplug.engine.autocast import find_plan, find_promotion
from tensorplug.engine.promotion import Promotion, is_needed

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.device import Device
    from tensorplug.dispatch.handlers import Handlers
    from tensorplug.dispatch.observer import Observer
    from tensorplug.engine.devices import Devices
    from tensorplug.engine.registry import Registry
    from tensorplug.engine.settings import Fallback

Proceed: TypeAlias = "Callable[[Call], list[Tensor]]"


class Call:
    """A kernel call on its way down.

    ``inputs`` are live tensors on ``device``, lists of them, or None. ``key``: of its plan; None
    if an attribute is not hashable.
    """

    __slots__ = ("context", "device", "engine", "inputs", "key", "observers", "plan")

    def __init__(
        self,
        engine: Path,
        context: Context,
        device: Device,
        key: Hashable | None,
        plan: plans.Plan,
        inputs: list[Any],
        observers: tuple[Observer, ...],
    ) -> None:
        self.engine = engine
        self.context = context
        self.device = device
        self.key = key
        self.plan: plans.Plan = plan
        self.inputs = inputs
        self.observers = observers

    @property
    def seen(self) -> bool:
        """Whether somebody must see each kernel of which the call consists.

        A tape must if the kernel has no gradient rule, so that those of its decomposition count.
        """
        recording = self.context.recording
        return bool(self.observers or (recording is not None and not self.plan.taped))


class Path:
    """The part of an engine that runs kernels.

    ``observers`` see every call on a real device. ``fallback``: the policy if a device cannot run
    a call. ``handlers``: of the layers above.
    """

    registry: Registry
    devices: Devices
    observers: tuple[Observer, ...]
    fallback: Fallback
    handlers: Handlers

    def run(
        self,
        context: Context,
        spec: KernelSpec,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> Any:
        """Run one kernel; return its output tensor, or a list if its spec has multiple outputs.

        Raises:
            ArgumentError, ShapeError, DTypeError: the call does not fit the spec.
            DeviceMismatchError: inputs are committed to different devices.
            DisposedError, BackendClosedError: an input was disposed, or its backend was closed.
            KernelNotFoundError: no backend can run the call.
            KernelOutputError: an output does not have the type that the spec infers.

        """
        device = self.devices.of(context)
        target = operands.find_device(device, spec, inputs)
        descend = self._descend if target is device else self._descend_there
        outputs = descend(context, target, spec, inputs, attributes)
        return outputs if spec.multiple_outputs else outputs[0]

    def _descend(
        self,
        context: Context,
        device: Device,
        spec: KernelSpec,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> list[Tensor]:
        """Send a call down the stack of its context; ``device`` is that of the context."""
        if attributes:
            attributes = device.interpreter.fixed(attributes)
        # Before the key, which has no place for what is not a tensor yet, or not on this device.
        tensors = operands.prepare_inputs(device, spec, inputs)
        # An interpreter runs ops in the context outside. Observers there see these, not the call.
        observers = (*context.observers, *self.observers) if device.is_real else ()
        if observers:
            report_inputs(observers, inputs, tensors)
        key = operands.plan_key(spec, tensors, attributes)
        plan: plans.Plan | Promotion | None = None
        if context.autocast is not None:
            # Its rules are kept apart from the plans, which calls outside the block share.
            low: Any = context.autocast
            plan = find_plan(self.registry, device, low, key, spec, tensors)
        if plan is None:
            plan = device.plans.get(key) or device.slow_plans.get(key)
        if plan is None:
            plan = self._resolve_call(spec, device, tensors, attributes)
        if isinstance(plan, Promotion):
            if not plan.published:
                self._publish(device, key, plan)
            return self._cast_first(context, device, plan, tensors, attributes, observers)
        # From the innermost to the outermost. Only what the context has is there, since each
        # handler costs a Python call, and plans of the slow path run often.
        proceed: Proceed = self._execute
        if observers:
            proceed = partial(observe, proceed)
        if context.watched:
            proceed = partial(record, proceed)
        call = Call(self, context, device, key, plan, tensors, observers)
        outputs: list[Tensor] = self.handlers.calls(proceed, call)
        return outputs

    def _descend_there(
        self,
        context: Context,
        target: Device,
        spec: KernelSpec,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> list[Tensor]:
        """Send a call down on the device of its committed inputs, which is not the current one."""
        there = context.replace(device=target.root)
        with use_context(there):
            outputs = self._descend(there, target, spec, inputs, attributes)
        # The next such call finds the plan by the fast path, if no input has to be moved.
        plain = all(member.__class__ is Tensor for member in operands.flatten(inputs))
        key = operands.plan_key(spec, inputs, attributes) if plain else None
        plan = None if key is None else there.plans.get(key)
        if plan is not None and target.is_real:
            device = self.devices.of(context)
            self._remember(device, device.caches(context.autocast)[0], key, plan)
        return outputs

    # Handlers -------------------------------------------------------------------------

    def _cast_first(
        self,
        context: Context,
        device: Device,
        promotion: Promotion,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
        observers: tuple[Observer, ...],
    ) -> list[Tensor]:
        """Cast the inputs and start again from the top."""
        spec = promotion.spec
        # By `dispatch`, which is faster, unless somebody must see the casts as part of this call,
        # or they would run in another context than the one that this call is for.
        if not observers and device.is_real and context is innermost():
            outputs = promotion.run(inputs, attributes)
        else:

            def cast_and_run() -> Any:
                cast = promotion.apply(self, context, inputs)
                return self.run(context, spec, cast, attributes)

            outputs = promote(observers, promotion, inputs, cast_and_run)
        return outputs if spec.multiple_outputs else [outputs]

    def _execute(self, call: Call) -> list[Tensor]:
        """Run what the plan calls; a plan that has run and was checked enters the cache."""
        plan = call.plan
        outputs = plan.execute_verified(call.inputs)
        # Not before: a plan in the cache runs without a check, and a call that raises may be of a
        # kernel that refuses these data only.
        if not plan.published:
            self._publish(call.device, call.key, plan)
        return outputs

    # Plans ----------------------------------------------------------------------------

    def _resolve_call(
        self,
        spec: KernelSpec,
        device: Device,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> plans.Plan | Promotion:
        types = operands.types_of(inputs)
        tensors = operands.flatten(inputs)
        committed = True in [tensor._placement.committed for tensor in tensors]
        known = {"committed": committed, "interned": True}
        key = resolution.ruling_key(spec, types) if device.is_real else None
        ruling: resolution.Ruling | None = device.rulings.get(key)
        if ruling is not None and ruling.state is self.registry.state:
            plan = self._infer(spec, device, types, attributes, **known)
            if ruling.decide(plan):
                return plan
        promotion = self._find_promotion(spec, types, None)
        if promotion is not None:
            return promotion
        # Here and not in each call: two specs of one name would share kernels and rules.
        self.registry.check(spec)
        plan, _ = self._resolve(spec, device, types, attributes, **known)
        ruling = None if key is None else resolution.find_ruling(plan)
        if ruling is not None:
            device.remember(device.rulings, key, ruling)
        return plan

    def _find_promotion(
        self, spec: KernelSpec, types: Sequence[Any], low: DType | None
    ) -> Promotion | None:
        """Return the casts before a call; ``low``: the dtype of ``autocast``."""
        state = self.registry.state
        promotion = None if low is None else find_promotion(spec, types, low, state)
        if promotion is not None:
            return promotion
        dtype = spec.promoted(types)
        if dtype is None or not is_needed(spec, spec.promote, types, dtype):
            return None
        return Promotion(spec, dtype, state)

    def _resolve(
        self,
        spec: KernelSpec,
        device: Device,
        types: Sequence[Any],
        attributes: Mapping[str, Any],
        **known: bool,
    ) -> tuple[plans.Plan, list[plans.Step]]:
        """Return the plan of a call and the steps tried; ``known``: what ``Plan`` may know."""
        plan = self._infer(spec, device, types, attributes, **known)
        resolution.check_dtypes(plan)
        return plan, device.interpreter.resolve(self, plan)

    def _infer(
        self,
        spec: KernelSpec,
        device: Device,
        types: Sequence[Any],
        attributes: Mapping[str, Any],
        **known: bool,
    ) -> plans.Plan:
        """Return the plan of a call, which is not resolved yet."""
        state = self.registry.state
        kernel = state.kernel(spec.name, device.backend_name)
        named = (kernel and kernel.entry.dtypes) or frozenset()
        plain = types if device.is_real else unwatched(list(types))
        canonical, outputs = spec._resolve(types, attributes, named & STORAGE, plain)
        return plans.Plan(spec, canonical, device, types, outputs, state, **known)

    def resolve(self, plan: plans.Plan) -> list[plans.Step]:
        """Decide how a plan of a real device runs; return the steps tried."""
        return resolution.resolve(self, plan)

    def explain(
        self,
        spec: KernelSpec,
        device: Device,
        types: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> tuple[plans.Plan, list[plans.Step]]:
        """Resolve a call without running it; return the plan and the steps tried.

        ``types`` are promoted first, like the inputs of a call in the current context.
        """
        if len(types) == len(spec.declared):
            promotion = self._find_promotion(spec, types, current_context().autocast)
            types = types if promotion is None else promotion.promoted(types)
        return self._resolve(spec, device, types, attributes)

    def fallback_devices(self, home: Device) -> Iterator[Device]:
        """Yield devices of other backends, open ones first; open the others."""
        return self.devices.fallback_devices(home)

    def _publish(self, device: Device, key: Hashable | None, plan: plans.Plan | Promotion) -> None:
        """Cache the plan of a call, or the casts before it."""
        plan.published = True
        if key is None:
            return
        # `dispatch` runs the fast plans without checks of their outputs, and without a tape that
        # must see the kernels of a program.
        # (The plan below it stays for calls under such a tape, which take the slow path.)
        source = plan.source if isinstance(plan, plans.Plan) else None
        fast = isinstance(plan, plans.Plan) and plan.takes_buffers and plan.static_shapes
        fast = fast and not self.observers and (source is None or source.taped)
        self._remember(device, device.plans if fast else device.slow_plans, key, plan)
        if fast and source is not None:
            self._remember(device, device.slow_plans, key, source)

    def _remember(
        self,
        device: Device,
        cache: dict[Hashable, Any],
        key: Hashable,
        plan: plans.Plan | Promotion,
    ) -> None:
        """Put a plan into a cache of a device, unless the registry has changed since then."""
        # Another thread may have added or removed kernels while this plan was made: the caches
        # were cleared then, and must not get it.
        with device.lock:
            if plan.state is self.registry.state and not device.closed:
                device.remember(cache, key, plan)
                if isinstance(plan, plans.Plan) and plan.usage is not None:
                    device.keep_compiled(key, plan)


# The handlers that need nothing of the engine


def record(proceed: Proceed, call: Call) -> list[Tensor]:
    """Show the outputs to the context's tape and tidy scope."""
    outputs = proceed(call)
    plan = call.plan
    # A tape keeps placements, which differ from call to call if they depend on data.
    recorded = plan if plan.static_shapes else plan.with_outputs(outputs)
    call.context.record(recorded, call.inputs, outputs)
    if call.observers:
        notify(call.observers, "recorded", plan, outputs)
    return outputs


def observe(proceed: Proceed, call: Call) -> list[Tensor]:
    """Run the call inside its observers, the first one outermost."""
    return execute(call.observers, call.plan, call.inputs, partial(proceed, call))
