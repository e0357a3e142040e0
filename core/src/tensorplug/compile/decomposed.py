"""Decompositions as programs: traced once for a plan, then run (docs/adr/0029)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.compile.fusion.groups import fuse
from tensorplug.compile.fusion.steps import may_be_composite
from tensorplug.compile.programs.executable import Executable
from tensorplug.compile.programs.program import Program
from tensorplug.compile.tracing.calls import Call
from tensorplug.compile.tracing.decompositions import TracedDecomposition, trace_decomposition
from tensorplug.compile.tracing.passes import eliminate_common_calls, eliminate_dead_calls
from tensorplug.compile.tracing.values import Constant, Value
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.device import Usage, now
from tensorplug.engine.operands import flatten
from tensorplug.engine.plans import BY_OPS
from tensorplug.engine.resolution import count_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.compile.fusion.groups import Fusion
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.plans import Plan


_LARGEST: Final = 4096
"""Bytes of the data that a program of a decomposition may hold, beside Python numbers."""


def run_programs(proceed: Callable[..., list[Tensor]], call: Any) -> list[Tensor]:
    """Run a call (``engine.path.Call``) as a program of its decomposition, or in one pass.

    Not if a tape or an observer must see the kernels of which it consists.
    """
    plan: Plan = call.plan
    if call.key is None:  # such a plan is not kept, and a program of one use does not pay
        return proceed(call)
    if plan.how in BY_OPS:
        if call.seen:
            # A program is one kernel to them: neither its values nor its nodes would be seen.
            call.plan = plan.source or plan
        elif plan.traceable and plan.device.is_real:
            call.plan = _with_program(call.engine, plan)
    elif plan.how == "native" and not plan.published and plan.device.is_real:
        _fuse(call.engine, plan)
    return proceed(call)


def _with_program(engine: Engine, plan: Plan) -> Plan:
    """Return the plan of a decomposition's program; ``plan`` itself if there is none.

    A program whose kernels may be fused, and round otherwise, is made before the first run:
    equal calls must give equal results. Others are made for the second, which may never come.
    """
    fuses = plan.may_fuse()
    if not fuses and not plan.published:
        return plan
    usage = Usage()
    run = make_program(engine, plan, usage, fuses=fuses)
    plan.traceable = False
    return plan if run is None else plan.with_program(run, usage)


def _fuse(engine: Engine, plan: Plan) -> None:
    """Let the backend compute a large call in one pass, if it has several steps."""
    if plan.may_fuse() and may_be_composite(plan) and plan.yields():
        usage = Usage()
        run = _fuse_whole(engine, plan, usage)
        if run is not None:
            plan.call, plan.usage = run, usage


def make_program(
    engine: Engine, plan: Plan, usage: Usage, *, fuses: bool
) -> Callable[..., Any] | None:
    """Return a function that runs the kernels of a decomposition, for the buffers of one call.

    It returns a buffer, or a list of them if the spec has multiple outputs. Return None if the
    decomposition is no program (see ``trace_decomposition``), or uses data of its own that are
    too large to be kept. ``fuses``: whether the backend may fuse kernels. For calls that are
    fused as a whole no kernel is prepared. The function notes each call in ``usage``.
    """
    whole = _fuse_whole(engine, plan, usage) if fuses else None
    if whole is not None:
        return whole
    made = _make_executable(engine, plan, fuses=fuses)
    if made is None:
        return None
    run, multiple = made.run, plan.spec.multiple_outputs
    flat = all(isinstance(operand, TensorType) for operand in plan.inputs)

    def compute(*operands: Any) -> Any:
        usage.last = now()
        outputs = run(operands if flat else flatten(operands))
        return outputs if multiple else outputs[0]

    return compute


def count_crossing(engine: Engine, plan: Plan) -> int:
    """Return how many bytes a decomposition would copy to other backends and back.

    That is 0 where all its calls run here, and if it is no program (``trace_decomposition``).
    """
    traced = trace_decomposition(engine, plan)
    calls = [] if traced is None else traced.calls
    return sum(count_bytes(call.plan) for call in calls if call.plan.how == "fallback")


def find_groups(engine: Engine, plan: Plan) -> Fusion | None:
    """Return the groups in which a call of ``plan`` runs; None if the backend is not asked.

    It is asked for large calls of its kernels, and of decompositions that are programs.
    """
    if not plan.may_fuse():
        return None
    whole = _find_whole(engine, plan)[1]
    if plan.how == "native" or (whole is not None and whole.groups):
        return whole
    made = _make_executable(engine, plan, fuses=True)
    return None if made is None else made.program.fusion


def _make_executable(engine: Engine, plan: Plan, *, fuses: bool) -> Executable | None:
    """Return the program of a decomposition; None if there is none."""
    traced = trace_decomposition(engine, plan)
    if traced is None or _held_bytes(traced) > _LARGEST:
        return None
    calls, results = eliminate_common_calls(traced.calls, traced.outputs)
    calls = eliminate_dead_calls(calls, results)
    return Executable(engine, Program(plan.device, traced.inputs, calls, results), fuses=fuses)


def _find_whole(engine: Engine, plan: Plan) -> tuple[Call, Fusion | None]:
    """Return a call, and whether it is a group as a whole."""
    groups = plan.device.capabilities.groups
    inputs = [_enter(plan.device, operand) for operand in plan.inputs]
    call = Call(plan, inputs, [Value(placement) for placement in plan.outputs])
    if groups is None or not plan.static_shapes:
        return call, None
    return call, fuse(engine, groups, [call], call.outputs)


def _fuse_whole(engine: Engine, plan: Plan, usage: Usage) -> Callable[..., Any] | None:
    """Return a function that computes a call as one group; None if there is none."""
    call, fusion = _find_whole(engine, plan)
    if fusion is None or not fusion.groups:
        return None
    group, operands = fusion.groups[0], call.operands()
    run = group.run
    counts = [source for source in group.inputs if source not in operands]
    places = [[*operands, *counts].index(source) for source in group.inputs]
    fixed = [count.buffer for count in counts]
    multiple = plan.spec.multiple_outputs

    def compute(*operands: Any) -> Any:
        usage.last = now()
        buffers = [*flatten(operands), *fixed] if fixed else flatten(operands)
        outputs = run(*[buffers[at] for at in places])
        return outputs if multiple else outputs[0]

    return compute


def _enter(device: Any, operand: Any) -> Any:
    """Return a value for an input's type, or a list of them; None for an absent input."""
    if isinstance(operand, list):
        return [_enter(device, member) for member in operand]
    return operand and Value(device.placement(operand))


def _held_bytes(traced: TracedDecomposition) -> int:
    """Return the bytes of the constants of a program; the device keeps those of rank 0 anyway."""
    operands = [*traced.outputs]
    for call in traced.calls:
        operands += call.operands()
    constants = {id(held): held for held in operands if isinstance(held, Constant)}
    types = [held.placement.type for held in constants.values()]
    return sum(type_.nbytes for type_ in types if type_.shape)
