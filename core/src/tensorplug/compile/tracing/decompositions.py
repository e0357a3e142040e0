"""The calls that a decomposition makes, found by tracing it for the types of one call."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.compile.tracing.sizes import without_extents
from tensorplug.compile.tracing.trace import Trace
from tensorplug.dispatch.context import use_context
from tensorplug.engine.plans import Plan
from tensorplug.engine.resolution import resolve_decomposition
from tensorplug.engine.widening import find_decomposition

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.compile.tracing.calls import Call, Recorded
    from tensorplug.compile.tracing.values import Constant, Value
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.plans import Step


class TracedDecomposition(NamedTuple):
    """What a decomposition does for the types of one call.

    ``inputs``: one for each tensor of the call, in order: those in lists as well, but none for an
    absent input. ``outputs``: in the order of the spec.
    """

    inputs: list[Value]
    calls: list[Call]
    outputs: list[Value | Constant]


@dataclass(eq=False)
class _Trace(Trace):
    """The trace of a decomposition, whose plans outlive it: they hold no computed constants."""

    folds: bool = False
    expand: Callable[[Plan], bool] | None = None

    def resolve(self, engine: Engine, plan: Plan) -> list[Step]:
        """Resolve ``plan`` so that it records calls; with ``expand``, without resolving these."""
        if self.expand is None:
            return super().resolve(engine, plan)
        real = without_extents(plan, self.real)
        plan.attributes = real.attributes
        if not (self.expand(real) and resolve_decomposition(plan, [])):
            plan.call, plan.how = partial(self.record, real), "traced"
        return []

    def constants(self, device: Device) -> Device:  # noqa: ARG002  # as in a trace
        """Return the real device: programs share their constants, and ``memory`` counts them."""
        return self.real

    def locate(self) -> None:
        """Return no line: later calls come from other lines."""


def trace_decomposition(
    engine: Engine, plan: Plan, *, expand: Callable[[Plan], bool] | None = None
) -> TracedDecomposition | None:
    """Return the calls of the decomposition of ``plan``, even if ``plan`` is native.

    The calls are of plans of the plan's own device, without decomposed ones: their calls stand in
    their place. ``expand``: says of each plan, none of which is resolved then, whether the calls
    of its decomposition stand in its place. So the calls are to be read, not to be run.

    Return None if there is no decomposition for the types of ``plan``, or if it is not a program:
    it needs data, reads or assigns variables, draws from generators, or raises.

    Examples:
        >>> from tensorplug.compile.tracing.decompositions import trace_decomposition
        >>> from tensorplug.dispatch.context import current_context, engine_of
        >>> import tensorplug as tp
        >>> x = tp.asarray([1.0, 2.0])
        >>> engine = engine_of(current_context())
        >>> plan, _ = engine.explain(
        ...     engine.registry.spec("Square"), engine.devices.active, [x.type], {}
        ... )
        >>> [call.plan.spec.name for call in trace_decomposition(engine, plan).calls]
        ['Multiply']

    """
    if not plan.static_shapes or not _has_decomposition(plan):
        return None
    types = [placement.type for placement in plan.outputs]
    trace = _Trace(engine, plan.device, expand=expand)
    inputs: list[Value] = []

    traced = Plan(plan.spec, plan.attributes, trace.device, plan.inputs, types, plan.state)
    try:
        if not resolve_decomposition(traced, []):
            return None
        with use_context(trace.context()):
            tensors = traced.execute([_enter(trace, operand, inputs) for operand in plan.inputs])
        if [tensor.type for tensor in tensors] != types:
            return None
        outputs = [trace.operand(tensor) for tensor in tensors]
        effects = bool(trace.assigned)
    except Exception:  # noqa: BLE001  # the decomposition itself raises it again when it runs
        return None
    finally:
        recorded = trace.finish()
    if effects or not _is_pure(recorded):
        return None
    return TracedDecomposition(inputs, recorded.calls, outputs)


def _enter(trace: Trace, operand: Any, inputs: list[Value]) -> Any:
    """Return the tensors of an input without data; append their values to ``inputs``."""
    if isinstance(operand, list):
        return [_enter(trace, member, inputs) for member in operand]
    if operand is None:
        return None
    value, tensor = trace.enter(operand)
    inputs.append(value)
    return tensor


def _has_decomposition(plan: Plan) -> bool:
    owned = find_decomposition(plan)
    return owned is not None and not owned.entry.on_host


def _is_pure(recorded: Recorded) -> bool:
    """Return whether the outputs depend on nothing but the inputs."""
    return not (recorded.reads or recorded.floats.operations)
