"""Plans: how one call, with these input types and attributes, runs on one device.

A plan is resolved once and cached. The order is native kernel, decomposition, fallback to
another backend if the policy allows it, else an error that says why each step was refused.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final, Literal

from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.calls import buffers_of
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine import fallback
from tensorplug.engine.operands import unsupported
from tensorplug.errors import (
    DTypeError,
    KernelNotFoundError,
    KernelOutputError,
    KernelRefusedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.owner import Owner
    from tensorplug.contract.spec import InputType, KernelSpec
    from tensorplug.dispatch.device import Device, Placement
    from tensorplug.engine.fallback import Resolver
    from tensorplug.engine.registry import State

__all__ = ["How", "Plan", "Step", "decomposed", "resolve"]

How = Literal["native", "decomposed", "host", "fallback", "traced"]
Step = tuple[str, str]  # (what was tried, what came of it)


class Plan:
    """One resolved call.

    ``call`` takes buffers if ``how`` is native, else tensors. ``owner`` is the distribution
    whose kernel or decomposition runs. ``static_shapes``: all output shapes are known before it
    runs. ``recipes`` belongs to the tape.
    """

    __slots__ = (
        "attributes",
        "call",
        "device",
        "how",
        "inputs",
        "output",
        "outputs",
        "owner",
        "published",
        "recipes",
        "spec",
        "state",
        "static_shapes",
        "taped",
        "tensor",
        "varied",
    )

    def __init__(
        self,
        spec: KernelSpec,
        attributes: dict[str, Any],
        device: Device,
        inputs: Sequence[InputType],
        outputs: Sequence[TensorType],
        state: State,
    ) -> None:
        self.spec = spec
        self.attributes = attributes
        self.device = device
        self.inputs = [_interned(device, operand) for operand in inputs]
        self.outputs = tuple(_placed(device, output) for output in outputs)
        self.static_shapes = all(output.known for output in outputs)
        self.output: Placement = self.outputs[0] if self.outputs else None  # type: ignore[assignment]  # a call may have no outputs
        self.state = state
        self.tensor = Tensor
        self.recipes: dict[tuple[bool, ...], Any] = {}
        self.published = False  # True once it has run, was verified and was cached
        self.varied = 0  # how many plans were made from it, with other attributes
        self.taped = True  # whether the tape gets one node for the whole call
        self.how: How = "native"
        self.owner: Owner | None = None
        self.call: Callable[..., Any] = _unresolved

    def describe(self) -> str:
        """Return the call as text: ``Add(a=float32[3], b=float32[3])``."""
        return self.spec.describe(self.inputs)

    def annotate(self, error: BaseException) -> None:
        """Note on ``error``, raised by the kernel, which kernel it was and whose."""
        error.add_note(
            f"in kernel {self.describe()} of {self.owner} on backend {self.device.name!r}"
        )

    def execute(self, tensors: Sequence[Any]) -> list[Tensor]:
        """Run on live tensors of this plan's types and device; return the outputs."""
        try:
            if self.how == "native":
                result = self.call(*buffers_of(tensors))
            else:
                result = self.call(*tensors)
        except BaseException as error:
            if self.how == "native":
                self.annotate(error)
            raise
        if not self.spec.multiple_outputs:
            return [self._adopt(result, self.output)]
        if not isinstance(result, list | tuple) or len(result) != len(self.outputs):
            came = f"{len(result)} outputs" if isinstance(result, list | tuple) else type(result)
            raise KernelOutputError(
                f"{self.describe()} of {self.owner} on backend {self.device.name!r} returned "
                f"{came} instead of a list of {len(self.outputs)} outputs"
            )
        return [
            self._adopt(item, placement)
            for item, placement in zip(result, self.outputs, strict=True)
        ]

    def bound(self, outputs: Sequence[Tensor]) -> Plan:
        """Return this plan with the types that its outputs turned out to have, for the tape."""
        other = copy.copy(self)
        other.outputs = tuple(output._placement for output in outputs)
        return other

    def vary(self, attributes: Mapping[str, Any]) -> Plan | None:
        """Return the native plan of the same call with other attributes, which is in no cache.

        They must be canonical, and leave the types of the outputs as they are. None where the
        kernel declines.
        """
        self.varied += 1
        other: Plan = object.__new__(Plan)
        for name in _KEPT:
            setattr(other, name, getattr(self, name))
        other.attributes = {**self.attributes, **attributes}
        other.recipes, other.published, other.varied = {}, True, 0
        return other if _native(other, []) else None

    def _adopt(self, result: Any, placement: Placement) -> Tensor:
        if self.how == "native":
            if not placement.type.known:
                label = self.output_labels()[self.outputs.index(placement)]
                placement = self.device.placement(self._compared(result, placement, label))
            return Tensor._of(result, placement)
        if not isinstance(result, Tensor):
            raise KernelOutputError(
                f"{self.describe()}: the {self.how} form of {self.owner} returned "
                f"{type(result).__name__} instead of a tensor"
            )
        return Tensor._of(result._buffer, result._placement, result._node)

    def verify(self, outputs: Sequence[Tensor]) -> None:
        """Compare what came out with what the spec infers; done at a plan's first run.

        Raises:
            KernelOutputError: naming kernel, owner, output, what came and what should have.

        """
        for name, output, placement in zip(
            self.output_labels(), outputs, self.outputs, strict=True
        ):
            self._compared(output._buffer, placement, name)

    def _compared(self, buffer: Any, placement: Placement, label: str) -> TensorType:
        """Return the type of an output, which must be what was inferred."""
        try:
            real = placement.device.backend.describe(buffer)
        except TypeError as error:
            raise KernelOutputError(
                f"{self.describe()} of {self.owner}: {label} is no buffer of backend "
                f"{placement.device.name!r}: {error}"
            ) from None
        if not placement.type.admits(real):
            raise KernelOutputError(
                f"{self.describe()} of {self.owner} on backend {self.device.name!r}: "
                f"{label} is {real}, but must be {placement.type}"
            )
        return real

    def output_labels(self) -> list[str]:
        """Return what messages call each output: ``out``, or ``outs[0]`` of several."""
        names = self.spec.output_names
        if len(names) == len(self.outputs):
            return list(names)
        return [f"{names[0]}[{index}]" for index in range(len(self.outputs))]


_OWN: Final = {"attributes", "call", "owner", "published", "recipes", "varied"}  # of each plan
_KEPT: Final = [name for name in Plan.__slots__ if name not in _OWN]


def _placed(device: Device, type_: TensorType) -> Placement:
    """Return the placement of ``type_`` on ``device``, or where it keeps such tensors."""
    return (device.home(type_.dtype) or device).placement(type_)


def _interned(device: Device, given: InputType) -> InputType:
    """Return the one object of each type, so that backpropagation compares by identity."""
    if isinstance(given, TensorType):
        return _placed(device, given).type
    return None if given is None else [_placed(device, item).type for item in given]


def _unresolved(*_inputs: Any) -> Any:
    raise AssertionError("a plan ran before it was resolved")


def resolve(engine: Resolver, plan: Plan) -> list[Step]:
    """Decide how ``plan`` runs and set its ``call``, ``how`` and ``owner``.

    Returns the steps that were tried, for ``explain``. Where a function is traced, its calls are
    noted instead.

    Raises:
        KernelNotFoundError: when no way is left, with every step and why it was refused.

    """
    if plan.device.trace is not None:
        return plan.device.trace.resolve(engine, plan)  # type: ignore[no-any-return]  # of above
    steps: list[Step] = []
    if _native(plan, steps) or decomposed(plan, steps) or _fallback(engine, plan, steps):
        return steps
    spec, device = plan.spec, plan.device
    have = sorted({backend for name, backend in plan.state.kernels if name == spec.name})
    reasons = "; ".join(f"{what}: {outcome}" for what, outcome in steps)
    raise KernelNotFoundError(
        f"kernel {spec.name!r} cannot run on backend {device.name!r} for {plan.describe()}: "
        f"{reasons}. Loaded backends that have it: {', '.join(have) or 'none'}"
    )


def _native(plan: Plan, steps: list[Step]) -> bool:
    spec, device = plan.spec, plan.device
    owned = plan.state.kernel(spec.name, device.backend_name)
    if owned is None:
        steps.append(("native", "not registered"))
        return False
    entry = owned.entry
    missing = _uncovered(plan, entry.dtypes) or _missing_dtypes(plan, device.backend.dtypes)
    if missing:
        steps.append(("native", f"the kernel of {owned.owner} does not take {missing}"))
        return False
    extras = _asked(plan, entry.asks)
    if entry.prepares:
        try:
            plan.call = entry.function(*plan.inputs, **extras)
        except KernelRefusedError as error:
            steps.append(("native", f"the kernel of {owned.owner} declined: {error}"))
            return False
        except Exception as error:
            error.add_note(f"while {owned.owner} prepared {plan.describe()}")
            raise
    else:
        plan.call = _bind(entry.function, extras)
    plan.owner = owned.owner
    plan.how = "native"
    steps.append(("native", f"kernel of {owned.owner}"))
    return True


def _asked(plan: Plan, names: tuple[str, ...]) -> dict[str, Any]:
    """Return what a kernel or a decomposition asked for by name."""
    outputs: Any = tuple(placement.type for placement in plan.outputs)
    available = {
        **plan.attributes,
        "attributes": plan.attributes,
        "backend": plan.device.backend,
        "out": outputs if plan.spec.multiple_outputs else outputs[0],
    }
    return {name: available[name] for name in names}


def _bind(function: Callable[..., Any], extras: dict[str, Any]) -> Callable[..., Any]:
    if not extras:
        return function

    def call(*buffers: Any) -> Any:
        return function(*buffers, **extras)

    return call


def _uncovered(plan: Plan, dtypes: frozenset[DType] | None) -> str:
    """Return the name of the call's dtype if an entry for ``dtypes`` does not serve it."""
    dtype = plan.spec.dtype_of(plan.inputs, [placement.type for placement in plan.outputs])
    return "" if dtypes is None or dtype in dtypes else dtype.name


def _missing_dtypes(plan: Plan, served: frozenset[DType]) -> str:
    flat: list[TensorType] = [placement.type for placement in plan.outputs]
    for given in plan.inputs:
        if isinstance(given, TensorType):
            flat.append(given)
        elif given is not None:
            flat.extend(given)
    lacking = {item.dtype.name for item in flat if item.dtype not in served}
    return ", ".join(sorted(lacking))


def decomposed(plan: Plan, steps: list[Step]) -> bool:
    """Let ``plan`` run by its decomposition, or its function on the host; say whether it can."""
    spec = plan.spec
    owned = plan.state.decomposition(spec.name)
    if owned is None:
        steps.append(("decomposed", "no decomposition is registered"))
        return False
    entry = owned.entry
    missing = _uncovered(plan, entry.dtypes)
    if missing:
        steps.append(("decomposed", f"the one of {owned.owner} does not take {missing}"))
        return False
    extras = _asked(plan, entry.asks)
    if entry.on_host:
        plan.call = fallback.on_host(
            plan.device, entry.function, extras, multiple=spec.multiple_outputs
        )
        plan.owner = owned.owner
        plan.how = "host"
        steps.append(("host", f"by {owned.owner}, with copies there and back"))
        return True
    # With rules of its own the kernel is one node on the tape, and its inner ops are not
    # recorded; without any, the inner ops are what can be differentiated.
    opaque = any(plan.state.gradient(spec.name, name) for name in spec.input_names)
    plan.taped = opaque

    device = plan.device

    def call(*tensors: Any) -> Any:
        context = current_context()
        recording = None if opaque else context.recording
        # On this device to the end, also when another thread sets another backend meanwhile.
        with use_context(context.replace(device=device, recording=recording)):
            result = entry.function(*tensors, **extras)
        return _bare(result) if recording is None else result

    plan.call = call
    plan.owner = owned.owner
    plan.how = "decomposed"
    steps.append(("decomposed", f"by {owned.owner}"))
    return True


def _bare(result: Any) -> Any:
    """Return results without their place on the tape: one may be an input handed through."""
    if isinstance(result, list | tuple):
        return [_bare(item) for item in result]
    return Tensor._of(result._buffer, result._placement) if isinstance(result, Tensor) else result


def _fallback(engine: Resolver, plan: Plan, steps: list[Step]) -> bool:
    home = plan.device
    if engine.fallback == "error":
        steps.append(("fallback", "not allowed (TENSORPLUG_FALLBACK=error)"))
        return False
    for device in engine.fallback_devices(home):
        refused = _refused_on(engine, plan, device)
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


def _refused_on(engine: Resolver, plan: Plan, device: Device) -> str:
    """Return why ``device`` has no kernel of its own for the call, empty if it has one.

    A decomposition there, or yet another fallback, would be no better than one here, and two
    backends that decline would send the call back and forth without end.
    """
    types = [operand for operand in plan.inputs if isinstance(operand, TensorType)]
    types += [item for given in plan.inputs if isinstance(given, list) for item in given]
    outputs = [placement.type for placement in plan.outputs]
    for type_ in (*types, *outputs):
        if type_.dtype not in device.backend.dtypes:
            return unsupported(type_, device)
    # Not the plan's state: this backend may have been opened, and so registered, just now.
    state = engine.registry.state
    trial = Plan(plan.spec, plan.attributes, device, plan.inputs, outputs, state)
    steps: list[Step] = []
    return "" if _native(trial, steps) else steps[-1][1]


def check_dtypes(plan: Plan) -> None:
    """Refuse a plan whose outputs the device cannot hold.

    Raises:
        DTypeError: naming the dtype, the device and what it has.

    """
    allowed = plan.device.backend.dtypes
    for placement in plan.outputs:
        if placement.device is plan.device and placement.type.dtype not in allowed:
            raise DTypeError(f"{plan.describe()}: {unsupported(placement.type, plan.device)}")
