"""Resolving plans: which of the ways to run a call is taken.

That is the native kernel, a decomposition, or a fallback to another backend if the policy
permits; else an error explains why each step failed. The fallback comes before a decomposition
that would fall back itself, call by call, and copy as many bytes or more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.dispatch.context import current_context, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine import fallback
from tensorplug.engine.operands import flatten, unsupported
from tensorplug.engine.plans import Plan, extra_arguments, prepare, resolve_native
from tensorplug.engine.widening import find_decomposition, unsupported_dtype, wide_dtypes
from tensorplug.errors import DTypeError, KernelNotFoundError

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.entries import KernelEntry
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.fallback import Resolver
    from tensorplug.engine.plans import Step
    from tensorplug.engine.registry import Owned, State


class Ruling(NamedTuple):
    """What dtypes decide of the calls of a spec on a device, whatever their sizes.

    Nothing is promoted. A call whose outputs have the dtypes ``outputs`` too runs ``kernel``, if
    that does not decline the sizes.
    """

    state: State
    kernel: Owned[KernelEntry]
    outputs: list[DType]

    def decide(self, plan: Plan) -> bool:
        """Resolve a plan to the kernel; return whether that serves it."""
        dtypes = [output.type.dtype for output in plan.outputs]
        return dtypes == self.outputs and prepare(plan, self.kernel, [], late=False)


def ruling_key(spec: KernelSpec, types: Sequence[Any]) -> Hashable | None:
    """Return by what the ruling of a call is found; None for one with a list of inputs."""
    dtypes: list[DType | None] = []
    for type_ in types:
        if type_.__class__ is list:
            return None
        dtypes.append(None if type_ is None else type_.dtype)
    return (spec, *dtypes)


def find_ruling(plan: Plan) -> Ruling | None:
    """Return what other calls have in common with that of a resolved plan; None if nothing."""
    kernel = plan.state.kernel(plan.spec.name, plan.device.backend_name)
    if plan.how != "native" or kernel is None:
        return None
    return Ruling(plan.state, kernel, [output.type.dtype for output in plan.outputs])


def resolve(engine: Resolver, plan: Plan, *, late: bool = False) -> list[Step]:
    """Decide how ``plan`` runs and set its ``call``, ``how`` and ``owner``.

    Returns the steps tried, for ``explain``. ``late``: see ``resolve_native``.

    Raises:
        KernelNotFoundError: every step failed; the message gives the reasons.

    """
    steps: list[Step] = []
    if resolve_native(plan, steps, late=late):
        return steps
    if resolve_decomposition(plan, steps):
        _leave_whole(engine, plan, steps)
        return steps
    if _resolve_fallback(engine, plan, steps):
        return steps
    spec, device = plan.spec, plan.device
    have = sorted({backend for name, backend in plan.state.kernels if name == spec.name})
    reasons = "; ".join(f"{what}: {outcome}" for what, outcome in steps)
    raise KernelNotFoundError(
        f"kernel {spec.name!r} cannot run on backend {device.name!r} for {plan.describe()}: "
        f"{reasons}. Loaded backends that have it: {', '.join(have) or 'none'}"
    )


def resolve_decomposition(plan: Plan, steps: list[Step]) -> bool:
    """Resolve ``plan`` to other kernels or its host function; return whether it has these."""
    spec = plan.spec
    owned = find_decomposition(plan)
    if owned is None:
        steps.append(("decomposed", "no decomposition is registered"))
        return False
    entry = owned.entry
    missing = unsupported_dtype(plan, entry.dtypes)
    if missing:
        steps.append(("decomposed", f"the one of {owned.owner} does not take {missing}"))
        return False
    # Once per plan: the attributes are part of its key.
    extras = extra_arguments(plan, entry.asks)
    if entry.on_host:
        plan.call = fallback.on_host(
            plan.device, entry.function, extras, multiple=spec.multiple_outputs
        )
        plan.owner = owned.owner
        plan.how = "host"
        steps.append(("host", f"by {owned.owner}, with copies to the host and back"))
        return True
    # A kernel with gradient rules is one node on the tape, which does not record the inner ops.
    # Without rules, the tape records and differentiates the inner ops.
    opaque = any(plan.state.gradient(spec.name, name) for name in spec.input_names)
    plan.taped = opaque

    device = plan.device

    def call(*tensors: Any) -> Any:
        context = current_context()
        recording = None if opaque else context.recording
        # Without autocast: its rules are for the calls of a program, not for those inside one.
        # On this device, even if another thread sets another backend meanwhile.
        with use_context(context.replace(device=device, recording=recording, autocast=None)):
            result = entry.function(*tensors, **extras)
        return _detach(result) if recording is None else result

    plan.call = call
    plan.owner = owned.owner
    plan.traceable = plan.static_shapes
    wide = " and ".join(sorted(dtype.name for dtype in wide_dtypes(plan)))
    plan.how = "widened" if wide else "decomposed"
    steps.append((plan.how, f"in {wide}" if wide else f"by {owned.owner}"))
    return True


def _detach(result: Any) -> Any:
    """Return results without nodes: one may be an input that was returned unchanged."""
    if isinstance(result, list | tuple):
        return [_detach(member) for member in result]
    return Tensor._of(result._buffer, result._placement) if isinstance(result, Tensor) else result


def _leave_whole(engine: Resolver, plan: Plan, steps: list[Step]) -> None:
    """Resolve a decomposed call to another backend, if its own calls would copy no less there.

    Not if the tape must see these calls. A backend that has all primitives is not asked.
    """
    if engine.fallback == "error" or plan.how != "decomposed" or not plan.taped:
        return
    state, home = plan.state, plan.device.backend_name
    if all(name in state.decompositions or state.kernel(name, home) for name in state.specs):
        return
    nbytes, own = engine.handlers.crossing(engine, plan), count_bytes(plan)
    tried: list[Step] = []
    if nbytes and nbytes >= own and _resolve_fallback(engine, plan, tried):
        plan.traceable = False
        why = f"its calls would copy {nbytes} bytes to other backends and back, this one {own}"
        steps[-1:] = [("decomposed", why), *tried]


def count_bytes(plan: Plan) -> int:
    """Return the bytes of all inputs and outputs of a call whose sizes are known."""
    types = (*flatten(plan.inputs), *(output.type for output in plan.outputs))
    return sum(type_.nbytes for type_ in types if type_.known)


def _resolve_fallback(engine: Resolver, plan: Plan, steps: list[Step]) -> bool:
    home = plan.device
    if engine.fallback == "error":
        steps.append(("fallback", "not allowed (TENSORPLUG_FALLBACK=error)"))
        return False
    for device in engine.fallback_devices(home):
        refused = _explain_refusal(engine, plan, device)
        if refused:
            steps.append(("fallback", f"backend {device.name!r}: {refused}"))
            continue
        plan.call = fallback.on_backend(engine, plan.spec, plan.attributes, home, device)
        plan.owner = device.owner
        plan.how = "fallback"
        steps.append(("fallback", f"runs on backend {device.name!r}"))
        return True
    if not any(what == "fallback" for what, _ in steps):
        steps.append(("fallback", "no other backend is installed"))
    return False


def _explain_refusal(engine: Resolver, plan: Plan, device: Device) -> str:
    """Return why ``device`` has no native kernel for the call; "" if it has one.

    Decompositions and fallbacks do not count: two backends that decline a call would send it back
    and forth forever.
    """
    types = flatten(plan.inputs)
    outputs = [placement.type for placement in plan.outputs]
    for type_ in (*types, *outputs):
        if type_.dtype not in device.dtypes:
            return unsupported(type_, device)
    # Not the plan's state: opening this backend may just have registered its kernels.
    state = engine.registry.state
    trial = Plan(plan.spec, plan.attributes, device, plan.inputs, outputs, state)
    steps: list[Step] = []
    return "" if resolve_native(trial, steps) else steps[-1][1]


def check_dtypes(plan: Plan) -> None:
    """Refuse a plan whose output dtypes the device does not support.

    Raises:
        DTypeError: an output dtype is not supported.

    """
    allowed = plan.device.dtypes
    for placement in plan.outputs:
        if placement.device is plan.device and placement.type.dtype not in allowed:
            raise DTypeError(f"{plan.describe()}: {unsupported(placement.type, plan.device)}")
