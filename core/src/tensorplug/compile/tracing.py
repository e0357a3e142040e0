"""Calling a function with tensors that have a type but no data, and noting its kernel calls.

A ``TracedDevice`` stands in the context for a device. Types are inferred, inputs promoted,
decompositions entered and gradients taken by the engine as always; only where a kernel would run,
a ``Call`` is noted instead. What does not depend on the function's arguments is computed at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tensorplug.autodiff.tape import find_boundary, mark
from tensorplug.dispatch.context import Context, current_context
from tensorplug.dispatch.device import Device
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.plans import Plan, resolve, resolve_decomposition
from tensorplug.errors import CompileError
from tensorplug.observers import callsite
from tensorplug.ops import creation

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import numpy as np

    from tensorplug.autodiff.recording import Recording
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.device import Placement
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.plans import Step
    from tensorplug.observers.callsite import CallSite
    from tensorplug.tensors.variable import Variable

__all__ = ["Call", "Constant", "Operand", "Read", "Trace", "Value", "error"]


@dataclass(eq=False, slots=True)
class Value:
    """What stands for a buffer that exists only while a program runs."""

    placement: Placement


@dataclass(eq=False, slots=True)
class Constant:
    """A buffer that every run of a program uses."""

    buffer: Any
    placement: Placement


# What these make of a tensor depends on its type alone.
_OF_TYPES: Final = {creation.ONES_LIKE: creation.ones, creation.ZEROS_LIKE: creation.zeros}

Operand: TypeAlias = "Value | Constant | list[Value | Constant] | None"


@dataclass(eq=False, slots=True)
class Call:
    """One kernel call of a program: a plan of the real device, and where it was written."""

    plan: Plan
    inputs: list[Operand]
    outputs: list[Value]
    site: CallSite | None = None

    def operands(self) -> list[Value | Constant]:
        """Return the inputs as one list, without those that are absent."""
        found: list[Value | Constant] = []
        for operand in self.inputs:
            if isinstance(operand, list):
                found += operand
            elif operand is not None:
                found.append(operand)
        return found


@dataclass(eq=False, slots=True)
class Read:
    """A tensor that a program takes from a variable or a generator at each run."""

    source: Any
    fetch: Callable[[], Tensor]
    value: Value


def error(message: str) -> CompileError:
    """Return an error that names the line of the function that is traced."""
    site = callsite.find()
    where = "" if site is None else f" ({site.describe()})"
    return CompileError(f"compile: {message}{where}")


class _TracedBackend:
    """The backend of a traced device: data that is there already can be read, other cannot."""

    survives_fork = True

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._real = trace.real.backend

    @property
    def name(self) -> str:
        return self._real.name

    @property
    def device(self) -> str:
        return self._real.device

    @property
    def dtypes(self) -> frozenset[DType]:
        return self._real.dtypes

    def from_host(self, array: np.ndarray[Any, Any]) -> Any:
        return self._real.from_host(array)

    def to_host(self, buffer: Any) -> np.ndarray[Any, Any]:
        if not isinstance(buffer, Value):
            return self._real.to_host(buffer)
        type_ = buffer.placement.type
        if self._trace.over:
            raise error(
                f"a tensor ({type_}) that was made while a function was traced has outlived that, "
                "and never had any data; return it from the function instead"
            )
        raise error(
            f"the data of a tensor ({type_}) that depends on the arguments is asked for, but "
            "while the function is traced there is none: numbers, conditions and shapes must not "
            "depend on it. Choose with where(...), or leave this out of the compiled function"
        )

    def describe(self, buffer: Any) -> TensorType:
        if isinstance(buffer, Value):
            return buffer.placement.type
        return self._real.describe(buffer)

    def allocation(self, buffer: Any) -> tuple[Hashable, int]:
        return (id(buffer), 0) if isinstance(buffer, Value) else self._real.allocation(buffer)

    def synchronize(self) -> None:
        self._real.synchronize()

    def memory(self) -> Mapping[str, int]:
        return {}

    def close(self) -> None:
        """Do nothing: the real one stays open."""


class TracedDevice(Device):
    """Stands for a real device while a function is traced."""

    __slots__ = ("real",)

    def __init__(self, trace: Trace) -> None:
        real = trace.real
        super().__init__(
            real.name, real.backend_name, _TracedBackend(trace), real.owner, real.host
        )
        self.real = real
        self.trace = trace

    def placement(self, type_: TensorType) -> Placement:
        """Return the one placement of ``type_`` here, with the type object of the real device."""
        return super().placement(self.real.placement(type_).type)

    def home(self, dtype: DType) -> Device | None:
        """Return this device also for what the real one keeps in the host's memory."""
        return None if self.real.home(dtype) is None else self

    def can_use(self, placement: Placement) -> bool:
        """Return whether a tensor is here, or on the real device."""
        return placement.device is self or self.real.can_use(placement)


@dataclass(eq=False)
class Trace:
    """One function being traced for one device: what it asked for, in order.

    ``expected``: what an earlier trace of the same function has read, in order; this one has to
    read the same.
    """

    engine: Engine
    real: Device
    calls: list[Call] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    over: bool = False

    def __post_init__(self) -> None:
        self.since = mark()
        self._differentiated = current_context().recording is not None
        self.device = TracedDevice(self)
        self.assigned: dict[int, tuple[Variable, Tensor]] = {}  # new contents, by identity
        self._constants: dict[int, Constant] = {}
        self._expected: list[Read] | None = None

    def context(self, recording: Recording | None = None) -> Context:
        """Return the context in which the function is called: nothing around it takes part."""
        return Context(self.engine, self.device, recording)

    def enter(self, type_: TensorType, node: Any = None) -> tuple[Value, Tensor]:
        """Return a value that a program is given, and a tensor of it."""
        home = self.real.home(type_.dtype) or self.real
        value = Value(home.placement(type_))
        return value, Tensor._of(value, self.device.placement(type_), node)

    # What is read and assigned ------------------------------------------------------------

    def expect(self, reads: Sequence[Read]) -> None:
        """Let the function read what it read in an earlier trace, in the same order."""
        for read in reads:
            value, _ = self.enter(read.value.placement.type)
            self.reads.append(Read(read.source, read.fetch, value))
        self._expected = list(self.reads)

    def read(self, variable: Any, held: Tensor) -> Tensor:
        """Return what stands for the contents of a variable."""
        assigned = self.assigned.get(id(variable))
        if assigned is not None:
            return assigned[1]
        for item in self.reads:
            if item.source is variable:
                return self._tensor(item.value)
        return self._tensor(self._taken(variable, variable._reading, held.type).value)

    def draw(self, generator: Any, like: Tensor) -> Tensor:
        """Return what stands for a new key of a generator; ``like`` is of its type."""
        if self._expected is not None:
            for item in self._expected:
                if item.source is generator:
                    self._expected.remove(item)
                    return self._tensor(item.value)
        return self._tensor(self._taken(generator, generator.key, like.type).value)

    def _taken(self, source: Any, fetch: Callable[[], Tensor], type_: TensorType) -> Read:
        if self._expected is not None:
            raise error("the function reads something else than when it was traced before")
        read = Read(source, fetch, self.enter(type_)[0])
        self.reads.append(read)
        return read

    def _tensor(self, value: Value) -> Tensor:
        return Tensor._of(value, self.device.placement(value.placement.type))

    def refusal(self, message: str) -> CompileError:
        """Return the error for what nobody could do again at each run."""
        return error(message)

    def assign(self, variable: Any, tensor: Tensor) -> None:
        """Note new contents of a variable, which it gets when a program has run."""
        if not hasattr(variable, "_placement"):
            raise error(
                "the function makes a variable, but its body runs only when it is traced; make "
                "variables outside, and pass them or let the function take them from there"
            )
        tensor._live()
        self.assigned[id(variable)] = (variable, Tensor._of(tensor._buffer, tensor._placement))

    # Calls --------------------------------------------------------------------------------

    def operand(self, tensor: Tensor) -> Value | Constant:
        """Return what a program uses for a tensor."""
        buffer = tensor._buffer
        if isinstance(buffer, Value):
            if tensor._placement.device is not self.device:
                raise error(
                    f"a tensor ({tensor.type}) of another function that is being traced is used; "
                    "pass it as an argument"
                )
            return buffer
        self._check_captured(tensor)
        constant = self._constants.get(id(buffer))
        if constant is None:
            home = self.real.home(tensor.dtype) or self.real
            constant = Constant(buffer, home.placement(tensor.type))
            self._constants[id(buffer)] = constant
        return constant

    def _check_captured(self, tensor: Tensor) -> None:
        node = tensor._node
        if node is None or not self._differentiated:
            return
        if node.order < self.since or find_boundary([node], self.since):
            raise error(
                f"the function uses a tensor ({tensor.type}) from around it that is being "
                "differentiated, and no gradient could flow back there; pass it as an argument, "
                "or apply stop_gradient to it before"
            )

    def resolve(self, engine: Engine, plan: Plan) -> list[Step]:
        """Let calls of ``plan`` be noted as calls of the real device's; enter decompositions."""
        outputs = [output.type for output in plan.outputs]
        real = Plan(plan.spec, plan.attributes, self.real, plan.inputs, outputs, plan.state)
        steps = resolve(engine, real)
        if real.how == "decomposed":
            resolve_decomposition(plan, [])
        else:
            plan.call, plan.how, plan.owner = self._recorder(real), "traced", real.owner
        return steps

    def _recorder(self, plan: Plan) -> Callable[..., Any]:
        """Return what notes a call of the real device's ``plan``, given tensors."""

        def call(*tensors: Any) -> Any:
            operands: list[Operand] = [
                [self.operand(one) for one in tensor]
                if isinstance(tensor, list)
                else None
                if tensor is None
                else self.operand(tensor)
                for tensor in tensors
            ]
            noted = Call(plan, operands, [])
            filler = _OF_TYPES.get(plan.spec)
            if filler is not None:
                type_ = plan.output.type
                outputs = [filler(type_.shape, dtype=type_.dtype)]
            elif not any(isinstance(operand, Value) for operand in noted.operands()):
                outputs = self._compute(plan, tensors)
            elif not plan.static_shapes:
                raise error(
                    f"the shape of {plan.describe()} depends on the data of the arguments; a "
                    "compiled function has fixed shapes"
                )
            else:
                noted.outputs = [Value(output) for output in plan.outputs]
                noted.site = callsite.find()
                self.calls.append(noted)
                outputs = [self._tensor(output) for output in noted.outputs]
            return outputs if plan.spec.multiple_outputs else outputs[0]

        return call

    def _compute(self, plan: Plan, tensors: Sequence[Any]) -> list[Tensor]:
        """Run a call that depends on no argument."""
        outputs = plan.execute([_really(self.real, tensor) for tensor in tensors])
        if not plan.published:
            plan.verify(outputs)
        return [
            Tensor._of(output._buffer, self.device.placement(output.type)) for output in outputs
        ]


def _really(device: Device, given: Any) -> Any:
    """Return constants, one, a list or none, as tensors of the real device."""
    if isinstance(given, list):
        return [_really(device, item) for item in given]
    if given is None:
        return None
    home = device.home(given.dtype) or device
    return Tensor._of(given._buffer, home.placement(given.type))
