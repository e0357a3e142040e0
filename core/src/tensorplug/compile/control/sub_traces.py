"""Tracing functions that a traced function gives to a loop or a branch.

The tensors of the traced function that they use, and its variables, become inputs of the
sub-program: the program passes them to each run of it.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.compile.control.sub_programs import SubProgram
from tensorplug.compile.tracing.trace import Trace
from tensorplug.compile.tracing.values import Constant, Value, error
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.engine.logical_devices import Carried
from tensorplug.engine.operands import flatten

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.autodiff.recording import Recording
    from tensorplug.autodiff.tape import Node
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.device import Device
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.plans import Plan
    from tensorplug.observers.callsite import CallSite


class TracedFunction(NamedTuple):
    """A function as a sub-program.

    ``captured``: the values of the outer trace that are its last inputs. ``nodes``: those of the
    tensors on the tape that the function uses besides its arguments, with their types.
    """

    program: SubProgram
    captured: list[Value]
    nodes: dict[Node, TensorType]


def trace_function(
    outer: Trace,
    f: Callable[[list[Tensor]], list[Tensor]],
    types: Sequence[TensorType],
    *,
    who: str,
    recording: Recording | None,
    hoists: bool = True,
) -> TracedFunction:
    """Return what ``f`` does with tensors of ``types``; no tape records it.

    ``recording``: whose variables it reads. ``hoists``: calls that do not depend on the arguments
    are recorded in the outer trace.

    Raises:
        CompileError: ``f`` does something that a sub-program cannot.

    """
    trace = _SubTrace(
        outer.engine,
        outer.real,
        folds=outer.folds,
        outer=outer,
        who=who,
        reading=recording,
        hoists=hoists,
    )
    entries = [trace.enter(type_) for type_ in types]
    try:
        with use_context(trace.context(autocast=current_context().autocast)):
            results = f([tensor for _, tensor in entries])
        outputs = [trace.operand(tensor) for tensor in results]
        captured, nodes = trace.captured, trace.nodes
    finally:
        recorded = trace.finish()
    inputs = [value for value, _ in entries] + list(captured.values())
    program = SubProgram.of(inputs, recorded.calls, outputs)
    return TracedFunction(program, list(captured), nodes)


@dataclass(eq=False)
class _SubTrace(Trace):
    """The trace of a function inside another trace."""

    _: KW_ONLY
    outer: Trace
    who: str
    reading: Recording | None
    hoists: bool
    captured: dict[Value, Value] = field(default_factory=dict)  # of the outer trace, and here
    hoisted: dict[Value, Tensor] = field(
        default_factory=dict
    )  # by their values in the outer trace
    nodes: dict[Node, TensorType] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        outer: list[Trace] = [self.outer]
        while isinstance(outer[-1], _SubTrace):
            outer.append(outer[-1].outer)
        self._begun = [(trace, len(trace.calls)) for trace in outer]

    # Tensors from outside -----------------------------------------------------------------

    def operand(self, tensor: Tensor) -> Value | Constant:
        """Return the value or the constant of a tensor, which may be one of the outer trace."""
        if tensor._placement.device is self.device:
            buffer = tensor._buffer
            outside = self.hoisted.get(buffer) if isinstance(buffer, Value) else None
            if outside is None:
                return super().operand(tensor)
            tensor = outside
        self._note(tensor)
        operand_outside = self.outer.operand(tensor)
        if isinstance(operand_outside, Constant):
            return operand_outside
        inner = self.captured.get(operand_outside)
        if inner is None:
            inner = self.captured[operand_outside] = Value(operand_outside.placement)
        return inner

    def find_outside(self, value: Value) -> tuple[Trace, Any] | None:
        """Return the trace around this one, and the value there."""
        tensor = self.hoisted.get(value)
        if tensor is not None:
            return tensor._placement.device.interpreter, tensor._buffer
        outside = (outer for outer, inner in self.captured.items() if inner is value)
        return next(((self.outer, outer) for outer in outside), None)

    def _note(self, tensor: Tensor) -> None:
        node = tensor._node
        if node is not None and node.order < self.since:
            self.nodes[node] = tensor.type

    def _check_captured(self, tensor: Tensor) -> None:
        """Do nothing: the outer trace checks the tensors from outside."""

    def record(self, plan: Plan, *inputs: Any) -> Any:
        """Record a call, or let the outer trace do so if no operand is a value of this one."""
        tensors = flatten(inputs)
        values = [tensor for tensor in tensors if isinstance(tensor._buffer, Value)]
        if (
            not self.hoists
            or not values
            or any(tensor._placement.device is self.device for tensor in values)
        ):
            return super().record(plan, *inputs)
        for tensor in tensors:
            self._note(tensor)
        recorded = self.outer.record(plan, *inputs)
        # The tape restores an output with the placement of the plan that it saw: of this trace.
        for output in recorded if plan.spec.multiple_outputs else [recorded]:
            if isinstance(output._buffer, Value):
                self.hoisted[output._buffer] = output
        return recorded

    def constants(self, device: Device) -> Device:
        """Return the device of the outer trace, which keeps Python numbers as tensors."""
        return self.outer.constants(device)

    def locate(self) -> CallSite | None:
        """Return the line of the call, as the outer trace finds it."""
        return self.outer.locate()

    # What belongs to the whole program ----------------------------------------------------

    def read(self, variable: Any, held: Tensor) -> Tensor:
        """Return the tensor that the outer trace has for the contents of a variable."""
        watched = None if self.reading is None else self.reading.reading(variable)
        return self.outer.read(variable, held) if watched is None else watched

    def number(
        self, value: Any, dtype: DType | None = None, *, peer: DType | None = None
    ) -> Tensor | None:
        """Return a traced float of the program as a tensor of the outer trace."""
        return self.outer.number(value, dtype, peer=peer)

    def check(self, check: Callable[[], None]) -> None:
        """Make each run of the program call ``check``."""
        self.outer.check(check)

    def assign(self, variable: Any, tensor: Tensor) -> None:  # noqa: ARG002  # as in a trace
        """Refuse to assign to a variable."""
        raise self._refuse(f"assigns to variable {getattr(variable, 'name', '')!r}")

    def change(self, tensor: Tensor) -> None:
        """Refuse to change a tensor from outside, which each step or branch would have to do."""
        super().change(tensor)
        parts: list[Tensor | None] = [tensor]
        for part in parts:
            if part is None:
                continue
            if isinstance(part._buffer, Carried):
                parts += part._buffer.tensors
            elif isinstance(part._buffer, Value) and self._is_from_outside(part):
                raise self._refuse(f"assigns to a tensor ({tensor.type}) from outside")

    def _is_from_outside(self, tensor: Tensor) -> bool:
        """Return whether the function did not make a tensor, here or in the outer traces."""
        made = [call.outputs for trace, begin in self._begun for call in trace.calls[begin:]]
        return tensor._placement.device is not self.device and tensor._buffer not in chain(*made)

    def draw(self, generator: Any, type_: TensorType) -> Tensor:  # noqa: ARG002  # as in a trace
        """Refuse to draw from a generator, which would give each step the same numbers."""
        raise error(
            f"{self.who} draws from a generator; pass keys instead, such as those of "
            "random.split(generator.key(), n)"
        )

    def _refuse(self, what: str) -> Exception:
        return error(f"{self.who} {what}; return new values from it, and do this with its result")
