"""Tracing: calling a function with tensors without data, and recording its kernel calls.

A ``TracedDevice`` replaces the device in the context. The engine infers types, promotes inputs,
runs decompositions and computes gradients as usual, but records a ``Call`` instead of running a
kernel. Results that do not depend on the function's arguments are computed immediately.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from tensorplug.autodiff.tape import find_boundary, mark
from tensorplug.compile.arguments.floats import Floats, TracedFloat, fixed
from tensorplug.compile.tracing.calls import Call, Read, Recorded
from tensorplug.compile.tracing.functions import is_declared, may_wait
from tensorplug.compile.tracing.offsets import find_distance
from tensorplug.compile.tracing.sizes import declared_sizes, without_extents
from tensorplug.compile.tracing.traced_device import TracedDevice
from tensorplug.compile.tracing.uniform import OF_TYPES, Computed
from tensorplug.compile.tracing.values import Constant, Value, error, needs_data
from tensorplug.contract import dtypes as dt
from tensorplug.contract.extents import Extent, replaced
from tensorplug.contract.tensor_types import unwatched
from tensorplug.dispatch.context import Context, current_context, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.logical_devices import Carried, LogicalDevice
from tensorplug.engine.plan_calls import complete
from tensorplug.engine.plans import BY_OPS, Plan
from tensorplug.engine.resolution import resolve, resolve_decomposition
from tensorplug.engine.stand_ins import StandInDevice
from tensorplug.engine.widening import find_decomposition
from tensorplug.observers import callsite
from tensorplug.ops import creation, quantization

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.autodiff.recording import Recording
    from tensorplug.compile.arguments.floats import FloatInput
    from tensorplug.compile.tracing.calls import Operand
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.device import Device, Placement
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.plans import Step
    from tensorplug.observers.callsite import CallSite
    from tensorplug.tensors.variable import Variable


@dataclass(eq=False)
class Trace:
    """The recorded calls and reads of one function on one device, in order.

    ``folds``: whether calls that depend on no argument run at once, for every run, loops may give
    up calls of their steps, and functions that the device declares stay single calls.
    ``committed``: whether a tensor of the function is committed to the device, and so all results.
    ``sizes_read``: by Python code, which may do something else at other sizes; ``exact``: whether
    it may have read others, too.
    """

    engine: Engine
    real: Device
    floats: Floats = field(default_factory=lambda: Floats(()))
    folds: bool = True
    finished: bool = False
    committed: bool = False
    exact: bool = False

    def __post_init__(self) -> None:
        self.sizes_read: set[int] = set()
        self.sizes_declared: set[int] = set()  # of those that decompositions read
        device = current_context().device
        while isinstance(device, StandInDevice):
            if isinstance(device.interpreter, Trace):
                device.interpreter.exact = True
            device = device.real
        self.since: int = mark()
        self._differentiated = current_context().recording is not None
        self.device: TracedDevice = TracedDevice(self)
        self._expected: list[Read] | None = None
        self._plugins: tuple[str, ...] | None = None
        self._forget()

    def _forget(self) -> None:
        self.calls: list[Call] = []
        self.reads: list[Read] = []
        self.assigned: dict[int, tuple[Variable, Tensor]] = {}  # new contents, by identity
        self._constants: dict[int, Constant] = {}
        self._computed = Computed()
        self._numbers: dict[FloatInput, Value] = {}

    def context(
        self, recording: Recording | None = None, autocast: DType | None = None
    ) -> Context:
        """Return the context in which to call the function, without outer scopes or tapes."""
        return Context(self.engine, self.device, recording, autocast=autocast)

    def enter(self, type_: TensorType, node: Any = None) -> tuple[Value, Tensor]:
        """Return a new input of the program, and its tensor."""
        home = self.real.home(type_.dtype) or self.real
        value = Value(home.placement(type_))
        return value, Tensor._of(value, self.device.placement(type_), node)

    def finish(self) -> Recorded:
        """Make tensors and floats that outlive the trace unreadable; return what it recorded.

        The trace forgets it and its device: these and the plans refer to one another, and would
        wait for the garbage collector, with the variables and captured tensors that they keep.
        """
        recorded = Recorded(self.calls, self.reads, self.floats, self._numbers)
        self.finished = self.floats.finished = True
        self.floats, self._expected = Floats(()), None
        self._forget()
        self.device.constants.clear()
        self.device.forget_plans()
        del self.device  # it refers to the trace
        return recorded

    # Reads and assignments ----------------------------------------------------------------

    def expect(self, reads: Sequence[Read]) -> None:
        """Require the same reads as in an earlier trace, in the same order."""
        for read in reads:
            value, _ = self.enter(read.value.placement.type)
            self.reads.append(Read(read.source, read.fetch, value))
        self._expected = list(self.reads)

    def read(self, variable: Any, held: Tensor) -> Tensor:
        """Return a tensor for the contents of a variable."""
        self._follow(held)
        assigned = self.assigned.get(id(variable))
        if assigned is not None:
            return assigned[1]
        for read in self.reads:
            if read.source is variable:
                return self.tensor(read.value)
        return self.tensor(self._add_read(variable, variable._reading, held.type).value)

    def draw(self, generator: Any, type_: TensorType) -> Tensor:
        """Return a tensor for a new key of a generator, of ``type_``."""
        if self._expected is not None:
            for read in self._expected:
                if read.source is generator:
                    self._expected.remove(read)
                    return self.tensor(read.value)
        return self.tensor(self._add_read(generator, generator.key, type_).value)

    def _add_read(self, source: Any, fetch: Callable[[], Tensor], type_: TensorType) -> Read:
        if self._expected is not None:
            raise error("the function reads other variables or generators than in the first trace")
        read = Read(source, fetch, self.enter(type_)[0])
        self.reads.append(read)
        return read

    def tensor(self, value: Value) -> Tensor:
        """Return a tensor for a value of the program."""
        return Tensor._of(value, self.device.placement(value.placement.type))

    def forbid(self, message: str) -> None:
        """Refuse an action that a program cannot repeat."""
        raise error(message)

    def assign(self, variable: Any, tensor: Tensor) -> None:
        """Record new contents of a variable, which each run of the program assigns."""
        if not hasattr(variable, "_placement"):
            raise error(
                "the function creates a variable, but its body runs only in tracing; create "
                "variables outside, and pass or capture them"
            )
        tensor._live()
        self.assigned[id(variable)] = (variable, Tensor._of(tensor._buffer, tensor._placement))

    def change(self, tensor: Tensor) -> None:
        """Check that the function may replace the contents of a tensor: not of a captured one.

        Raises:
            CompileError: it has data from outside, which would change once, in tracing.

        """
        device = tensor._placement.device
        while isinstance(device, LogicalDevice):
            device = device.real
        if device.is_real:
            raise error(
                f"the function assigns to a tensor ({tensor.type}) from outside, but its body "
                "runs only in tracing; pass the tensor as an argument, whose new contents each "
                "call assigns, use a variable, or assign to a copy"
            )

    def placement_of_copy(self, placement: Placement) -> Placement:
        """Return the placement of a copy of a tensor, to which the function may assign."""
        captured = placement.device.is_real
        return self.device.placement(placement.type) if captured else placement

    # Numbers ------------------------------------------------------------------------------

    def number(
        self, value: Any, dtype: DType | None = None, *, peer: DType | None = None
    ) -> Tensor | None:
        """Return a traced float as a tensor of rank 0; None for any other value, but an extent.

        ``dtype``: of the tensor; by default it follows ``peer``, the dtype of the other inputs.
        """
        if value.__class__ is Extent:
            target = dtype or dt.of_scalar(0, peer)
            if target not in dt.REAL or self.real.home(target) is None:
                return None
            with use_context(self.context()):
                return creation.full((), cast("int", value), dtype=target)
        if type(value) is not TracedFloat or value.floats is not self.floats:
            return None
        target = dtype or dt.of_scalar(0.0, peer)
        if target not in dt.INEXACT or self.real.home(target) is None:
            return None
        input_ = self.floats.input(value, target)
        if input_ is None:
            return None
        traced = self._numbers.get(input_)
        if traced is None:
            traced = self._numbers[input_] = self.enter(input_.type)[0]
        return self.tensor(traced)

    def check(self, check: Callable[[], None]) -> None:
        """Make each run call ``check``, which raises if the program no longer fits."""

        def checked() -> float:
            check()
            return 0.0

        self.floats.operations.append((checked, ()))

    def fixed(self, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the attributes of a call with numbers for traced floats."""
        return {name: fixed(value) for name, value in attributes.items()}

    def describe(self, tensor: Tensor) -> str | None:
        """Return a description of a tensor of this trace, in one line; None if it has data."""
        if not isinstance(tensor._buffer, Value):
            return None
        if self.finished:
            return f"<traced Tensor {tensor.type}, unreadable: its trace has ended>"
        return (
            f"<traced Tensor {tensor.type} on {self.real.name}, which gets its values when the "
            "compiled function runs: return it, or call the function without compile, to see them>"
        )

    def distance(self, start: Tensor, stop: Tensor) -> int | None:
        """Return ``stop - start`` of integers, if it is a constant; else None."""
        return find_distance(start, stop)

    def find_outside(self, value: Value) -> tuple[Trace, Any] | None:  # noqa: ARG002
        """Return the trace around this one, and the value there, of what it takes from there."""
        return None

    # Calls --------------------------------------------------------------------------------

    def operand(self, tensor: Tensor) -> Value | Constant:
        """Return the value or the constant of a tensor."""
        buffer = tensor._buffer
        if isinstance(buffer, Value):
            if tensor._placement.device is not self.device:
                raise error(
                    f"the function uses a tensor ({tensor.type}) of another traced function; pass "
                    "it as an argument"
                )
            return buffer
        self._check_captured(tensor)
        self._follow(tensor)
        constant = self._constants.get(id(buffer))
        if constant is None:
            if isinstance(buffer, Carried):
                raise tensor._placement.device.interpreter.escaped()
            home = self.real.home(tensor.dtype) or self.real
            placement = home.placement(unwatched(tensor.type))
            constant = Constant(buffer, placement, *self._computed.find(buffer))
            self._constants[id(buffer)] = constant
        return constant

    def _follow(self, captured: Tensor) -> None:
        """Check that a tensor from outside, if it is committed, is so to this device."""
        placement = captured._placement
        if placement.committed:
            self.device.beside(placement.device.root)

    def _check_captured(self, tensor: Tensor) -> None:
        node = tensor._node
        if node is None or not self._differentiated:
            return
        if node.order < self.since or find_boundary([node], self.since):
            raise error(
                f"the function captures a tensor ({tensor.type}) that is being differentiated, to "
                "which no gradient can flow; pass it as an argument, or apply stop_gradient to it "
                "before"
            )

    def resolve(self, engine: Engine, plan: Plan) -> list[Step]:
        """Resolve ``plan`` so that it records calls of the real device's plan or decomposition."""
        real = without_extents(plan, self.real)
        try:
            steps = resolve(engine, real, late=may_wait(real))
        except BaseException:  # which the function may catch, and depends on sizes
            self.exact = True
            raise
        given, plan.attributes = plan.attributes, real.attributes  # Python code needs numbers
        expands = real.how in BY_OPS and not (self.folds and is_declared(real))
        if expands and resolve_decomposition(plan, []):
            plan.call = partial(self._expand, real, plan.call)
        else:
            plan.attributes = given
            plan.call, plan.how, plan.owner = partial(self.record, real), "traced", real.owner
        return steps

    def _expand(self, plan: Plan, run: Callable[..., Any], *tensors: Any) -> Any:
        """Record the calls of a decomposition, which says which sizes it reads."""
        read = self.sizes_read.copy()
        outputs = run(*tensors)
        declared = declared_sizes(plan, find_decomposition(plan))
        self.exact = self.exact or declared is None
        self.sizes_read.clear()  # which the types refer to
        self.sizes_read.update(read)
        self.sizes_declared.update(declared or ())
        for value in (plan.extents or {}).values():
            replaced(value, int)
        if plan.spec is quantization.DEQUANTIZE:
            made = [call for call in self.calls if any(x is outputs._buffer for x in call.outputs)]
            for call in made:  # none if the weights are constant; their buffer may be an array
                call.dequantized = [None if x is None else self.operand(x) for x in tensors]
        return outputs

    def constants(self, device: Device) -> Device:  # noqa: ARG002  # real ones
        """Return the device whose cache keeps the function's Python numbers as tensors."""
        return self.device

    def locate(self) -> CallSite | None:
        """Return the line of the call that is being recorded."""
        if self._plugins is None:
            self._plugins = callsite.plugin_packages()
        return callsite.find(self._plugins)

    def record(self, plan: Plan, *inputs: Any) -> Any:
        """Record a call of ``plan``, a plan of the real device; return its outputs."""
        operands: list[Operand] = [
            [self.operand(tensor) for tensor in value]
            if isinstance(value, list)
            else None
            if value is None
            else self.operand(value)
            for value in inputs
        ]
        recorded = Call(plan, operands, [])
        create = OF_TYPES.get(plan.spec)
        if create is not None:
            type_ = self.device.placement(plan.output.type).type
            outputs = [create(type_.sizes, dtype=type_.dtype)]
        elif self.folds and not any(isinstance(operand, Value) for operand in recorded.operands()):
            outputs = self._compute(plan, inputs)
            fits = self._computed.note(recorded, outputs, self._constants)
            self.exact = self.exact or not fits
        elif not plan.static_shapes:
            raise needs_data(
                f"the output shape of {plan.describe()} depends on the data of the arguments; "
                "a compiled function needs static shapes",
                f"the output shape of {plan.spec.name} depends on its data",
            )
        else:
            outputs = self.add(recorded)
        return outputs if plan.spec.multiple_outputs else outputs[0]

    def add(self, call: Call) -> list[Tensor]:
        """Add a call to the program, at the current line; return its outputs."""
        call.outputs = [Value(output) for output in call.plan.outputs]
        call.site = self.locate()
        self.calls.append(call)
        return [self.tensor(output) for output in call.outputs]

    def _compute(self, plan: Plan, tensors: Sequence[Any]) -> list[Tensor]:
        """Run a call that does not depend on the function's arguments."""
        complete(plan)
        outputs = plan.execute_verified([_to_real(self.real, tensor) for tensor in tensors])
        return [
            Tensor._of(output._buffer, self.device.placement(output.type)) for output in outputs
        ]


def _to_real(device: Device, operand: Any) -> Any:
    """Return a constant, a list of constants, or None with placements on the real device."""
    if isinstance(operand, list):
        return [_to_real(device, tensor) for tensor in operand]
    if operand is None:
        return None
    home = device.home(operand.dtype) or device
    return Tensor._of(operand._buffer, home.placement(unwatched(operand.type)))
