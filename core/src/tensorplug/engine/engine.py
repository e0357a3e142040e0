"""The engine: runs kernels on the open devices.

The plan of a call comes from the cache; or it is resolved, run, checked against the spec, and
then cached. ``dispatch`` runs cached native plans itself and leaves all other calls to the engine.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tensorplug.contract.dtypes import STORAGE
from tensorplug.dispatch.commitment import commit
from tensorplug.dispatch.context import current_context, innermost, use_context
from tensorplug.dispatch.device import Usage
from tensorplug.dispatch.observer import execute, notify, promote, report_inputs
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine import operands, plans, resolution
from tensorplug.engine.autocast import find_plan, find_promotion
from tensorplug.engine.devices import BackendSource, Devices, Opened
from tensorplug.engine.promotion import Promotion
from tensorplug.errors import DTypeError
from tensorplug.ops.elementwise import CAST
from tensorplug.tensors.variable import Variable, alias

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.device import Device
    from tensorplug.dispatch.observer import Observer
    from tensorplug.engine.registry import Registry
    from tensorplug.engine.settings import Fallback

__all__ = ["BackendSource", "Engine", "Opened"]


class Engine:
    """Owns the registry and the open devices, and runs kernels. Tests build their own engines.

    Args:
        source: of the backends.
        registry: of the kernels, gradients and decompositions.
        prefer: backend names to try first, in order, if none was set.
        fallback: the policy if the active backend cannot run a kernel.
        observers: wrap every kernel that this engine runs.
        make_program: given the engine, a plan, whether the backend may fuse kernels, and what to
            note each use in, returns a function of buffers that does the same, or None: for a
            decomposition, without Python code between the kernels; for a native plan, in one pass
            over the elements.
        run_backward: runs a backward pass as a program if it can (``compile.backward``).
        run_steps: runs a loop of ops, as one call of a program that is traced (``ops.stepping``).

    """

    def __init__(
        self,
        source: BackendSource,
        registry: Registry,
        prefer: Sequence[str] = (),
        fallback: Fallback = "warn",
        *,
        observers: Sequence[Observer] = (),
        make_program: Callable[[Engine, plans.Plan, bool, Usage], Callable[..., Any] | None]
        | None = None,
        run_backward: Callable[..., Any] | None = None,
        run_steps: Callable[..., list[Tensor]] | None = None,
    ) -> None:
        self.registry = registry
        self.devices: Devices = Devices(source, registry, prefer)
        self.fallback: Fallback = fallback
        self.observers: tuple[Observer, ...] = tuple(observers)
        self._make_program = make_program
        self.run_backward = run_backward
        self.run_steps = run_steps

    # Devices --------------------------------------------------------------------------

    def open(self, name: str | None) -> Device:
        """Return the device called ``name``, opening it if necessary; None: the active one."""
        return self.devices.active if name is None else self.devices.open(name)

    def follow(self, context: Context) -> None:
        """Set ``context.plans`` to those of the active device, now and when it changes."""
        self.devices.follow(context)

    def fallback_devices(self, home: Device) -> Iterator[Device]:
        """Yield devices of other backends, open ones first; open the others."""
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

    # Kernels --------------------------------------------------------------------------

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
        run = self._run_here if target is device else self._run_there
        return run(context, target, spec, inputs, attributes)

    def _run_here(
        self,
        context: Context,
        device: Device,
        spec: KernelSpec,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> Any:
        """Run a call on the device of the context."""
        if attributes and device.trace is not None:
            attributes = device.trace.fixed(attributes)
        tensors = operands.prepare_inputs(device, spec, inputs)
        observers = (*context.observers, *self.observers) if device.trace is None else ()
        if observers:
            report_inputs(observers, inputs, tensors)
        key = operands.plan_key(spec, tensors, attributes)
        low = context.autocast
        plan: plans.Plan | Promotion = (
            (
                device.plans.get(key)
                if low is None
                else find_plan(self.registry, device, low, key, spec, tensors)
            )
            or device.slow_plans.get(key)
            or self._plan(device, spec, tensors, attributes)
        )
        if isinstance(plan, Promotion):
            if not plan.published:
                self._publish(device, key, plan)
            if not observers and device.trace is None and context is innermost():
                return plan.run(tensors, attributes)
            cast = partial(plan.apply, self, context, tensors)
            run_cast = partial(self.run, context, spec)
            return promote(observers, plan, tensors, lambda: run_cast(cast(), attributes))
        seen = bool(observers or (context.recording is not None and not plan.taped))
        plan = plan if key is None else self._compiled(plan, seen=seen)
        run = partial(plan.execute_verified, tensors)
        outputs: list[Tensor] = execute(observers, plan, tensors, run) if observers else run()
        if not plan.published:
            self._publish(device, key, plan)
        if context.watched:
            recorded = plan if plan.static_shapes else plan.with_outputs(outputs)
            context.record(recorded, tensors, outputs)
            if observers:
                notify(observers, "recorded", plan, outputs)
        return outputs if spec.multiple_outputs else outputs[0]

    def _run_there(
        self,
        context: Context,
        target: Device,
        spec: KernelSpec,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> Any:
        """Run a call on the device of its committed inputs, which is not the current one."""
        there = context.replace(device=target.root)
        with use_context(there):
            result = self._run_here(there, target, spec, inputs, attributes)
        # The next such call finds the plan by the fast path, if no input has to be moved.
        plain = all(member.__class__ is Tensor for member in operands.flatten(inputs))
        key = operands.plan_key(spec, inputs, attributes) if plain else None
        plan = None if key is None else there.plans.get(key)
        if plan is not None and target.trace is None:
            device = self.devices.of(context)
            self._remember(device, device.caches(context.autocast)[0], key, plan)
        return result

    def _compiled(self, plan: plans.Plan, *, seen: bool) -> plans.Plan:
        """Return the plan to run; ``seen``: whether a tape or an observer must see its kernels."""
        if plan.how in plans.BY_OPS:
            return plan.source or plan if seen else self._as_program(plan)
        if plan.how == "native" and not plan.published:
            self._fuse(plan)
        return plan

    def _as_program(self, plan: plans.Plan) -> plans.Plan:
        """Return the plan of a decomposition's program; ``plan`` itself if there is none.

        A program whose kernels may be fused, and round otherwise, is made before the first run:
        equal calls must give equal results. Others are made for the second, which may never come.
        """
        if not plan.traceable or self._make_program is None or plan.device.trace is not None:
            return plan
        fuses = plan.may_fuse()
        if not fuses and not plan.published:
            return plan
        usage = Usage()
        run = self._make_program(self, plan, fuses, usage)
        plan.traceable = False
        return plan if run is None else plan.with_program(run, usage)

    def _fuse(self, plan: plans.Plan) -> None:
        """Let the backend compute a large call in one pass, if it has several steps."""
        device = plan.device
        if (
            self._make_program is not None
            and device.trace is None
            and plan.owner == device.owner  # not a kernel that replaces the backend's
            and plan.may_fuse()
        ):
            usage = Usage()
            run = self._make_program(self, plan, True, usage)  # noqa: FBT003  # fuses
            if run is not None:
                plan.call, plan.usage = run, usage

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

    def _find_promotion(
        self, spec: KernelSpec, types: Sequence[Any], low: DType | None
    ) -> Promotion | None:
        """Return the casts before a call; ``low``: the dtype of ``autocast``."""
        state = self.registry.state
        found = None if low is None else find_promotion(spec, types, low, state)
        dtype = spec.promoted(types) if found is None else None
        if dtype is not None:
            found = Promotion(spec, dtype, state)
        return None if found is None or not found.needed(types) else found

    def _resolve(
        self,
        spec: KernelSpec,
        device: Device,
        types: Sequence[Any],
        attributes: Mapping[str, Any],
        *,
        committed: bool = False,
    ) -> tuple[plans.Plan, list[plans.Step]]:
        kernel = self.registry.state.kernel(spec.name, device.backend.name)
        named = (kernel and kernel.entry.dtypes) or frozenset()
        canonical, outputs = spec.resolve(types, attributes, named & STORAGE)
        plan = plans.Plan(
            spec, canonical, device, types, outputs, self.registry.state, committed=committed
        )
        resolution.check_dtypes(plan)
        return plan, resolution.resolve(self, plan)

    def _plan(
        self,
        device: Device,
        spec: KernelSpec,
        tensors: Sequence[Any],
        attributes: Mapping[str, Any],
    ) -> plans.Plan | Promotion:
        types = operands.types_of(tensors)
        promotion = self._find_promotion(spec, types, None)
        if promotion is not None:
            return promotion
        self.registry.check(spec)
        committed = True in [each._placement.committed for each in operands.flatten(tensors)]
        return self._resolve(spec, device, types, attributes, committed=committed)[0]

    def _publish(self, device: Device, key: Hashable | None, plan: plans.Plan | Promotion) -> None:
        """Cache a plan that has run and was checked."""
        plan.published = True
        if key is None:
            return
        # `dispatch` runs the fast plans without checks of their outputs, and without a tape that
        # must see the kernels of a program.
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
        with device.lock:
            if plan.state is self.registry.state and not device.closed:
                device.remember(cache, key, plan)
                if isinstance(plan, plans.Plan) and plan.usage is not None:
                    device.keep_compiled(key, plan)
