"""Interpreters: running a function on tensors that other tensors carry.

vmap calls a function with tensors of one example each, which tensors of all examples carry;
forward mode with primals, which pairs of primals and tangents carry. As in tracing
(``compile.tracing``), a device replaces the real one in the context. The engine infers types,
promotes inputs and records tapes as usual, on *logical* tensors: they have the types that the
function sees, and a ``Carried`` as buffer. Instead of running a kernel, the interpreter runs ops
on the *physical* tensors, in the context outside.

That context may record a tape, trace a program, or be interpreted itself, and so may the one
inside: transformations compose by nesting. Tensors of the device outside are constants inside; a
call of which all inputs are such runs outside, and its results are constants, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tensorplug.dispatch.context import (
    Context,
    current_context,
    engine_of,
    innermost,
    is_taped,
    use_context,
)
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.logical_devices import Carried, LogicalDevice
from tensorplug.engine.operands import flatten
from tensorplug.engine.plan_calls import entry_by_ops, run_call
from tensorplug.engine.plans import extra_arguments
from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence
    from typing import Self

    import numpy as np

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.device import Device, Placement
    from tensorplug.engine.engine import Engine
    from tensorplug.engine.plans import Plan, Step

LIMIT: Final = 16
"""Interpreters per device, which keep their plans for the next call: one per kind and size."""


class Interpreter(ABC):
    """Runs kernel calls on logical tensors by ops on the physical tensors that carry them.

    There is one for each kind and each device ``real`` of the physical tensors: it keeps no state
    of a call. The context outside is part of the context inside (``Context.outside``).

    There is another one for calls whose physical ops a tape may record (``taped``). Constants
    have no nodes that matter in all others, which therefore need only their buffers.
    """

    name: ClassVar[str]
    """The public function that uses it, for messages: ``"vmap"``."""

    parameters: tuple[Hashable, ...] = ()
    taped = True

    def __init__(self, real: Device) -> None:
        self.real = real
        outer = real.interpreter
        self.depth: int = outer.depth + 1 if isinstance(outer, Interpreter) else 1
        self.device: LogicalDevice = LogicalDevice(real, self)

    @classmethod
    def of(cls, outside: Context, *parameters: Hashable) -> Self:
        """Return the interpreter whose physical ops run on the device of ``outside``.

        ``parameters``: further arguments of the class, such as the number of examples.
        """
        device = outside.device or engine_of(outside).open(None)
        return cls._on(device, parameters, taped=is_taped(outside))

    def on(self, device: Device) -> Self:
        """Return the same interpreter for physical tensors on another device."""
        return self._on(device, self.parameters, taped=self.taped)

    @classmethod
    def _on(cls, device: Device, parameters: tuple[Hashable, ...], *, taped: bool) -> Self:
        # Kept on the device, so that the plans of a function stay known from call to call.
        key = (cls, taped, *parameters)
        interpreter: Self | None = device.interpreters.get(key)
        if interpreter is None:
            interpreter = cls(device, *parameters)
            interpreter.parameters, interpreter.taped = parameters, taped
            device.remember(device.interpreters, key, interpreter, LIMIT)
        return interpreter

    def context(self, outside: Context, call: object, recording: Any = None) -> Context:
        """Return the context in which to call a function of logical tensors.

        Their ops run in ``outside``, but not in its tidy scope, which adopts what the caller
        returns. ``call``: of the logical tensors that it may use. ``recording``: of a tape inside.
        Logical calls follow ``autocast``, not the physical ones that they become.
        """
        autocast = outside.autocast
        if outside.scope is not None or outside.device is None or autocast is not None:
            device = outside.device or engine_of(outside).open(None)
            outside = outside.replace(device=device, scope=None, autocast=None)
        device = self.device
        if not self.taped and is_taped(outside):  # later than the call for which it was made
            device = self._on(self.real, self.parameters, taped=True).device
        return Context(
            outside.engine, device, recording, outside=outside, autocast=autocast, call=call
        )

    def holds(self, tensor: Tensor) -> bool:
        """Return whether a tensor is a logical one of this interpreter, not a constant.

        Its physical tensors may be on another device.
        """
        return self._is_on(tensor._placement.device)

    def _is_on(self, device: Device | None) -> bool:
        """Return whether a device is that of this interpreter, or one beside it."""
        if device is self.device:
            return True
        other = getattr(device, "interpreter", None)  # a disposed tensor has no device
        return (
            isinstance(other, Interpreter)
            and type(other) is type(self)
            and other.parameters == self.parameters
            and other.depth == self.depth
        )

    def logical(self, buffer: Carried, type_: TensorType) -> Tensor:
        """Return the logical tensor of ``type_`` that ``buffer`` carries, committed as that is."""
        physical = [tensor for tensor in buffer.tensors if tensor is not None]
        committed = any(tensor._placement.committed for tensor in physical)
        return Tensor._of(buffer, self.device.placement(type_, committed=committed))

    def call_of(self, inputs: Sequence[Any]) -> object:
        """Return the call to which the logical tensors among ``inputs`` belong."""
        return next(tensor._buffer.call for tensor in flatten(inputs) if self.holds(tensor))

    def operands(
        self, plan: Plan, buffers: Sequence[Any], constants: Sequence[Placement | None]
    ) -> list[Tensor]:
        """Return the inputs of ``interpret`` that have ``buffers``.

        ``constants``: as ``on_buffers`` takes them.
        """
        return [
            self.logical(buffer, type_) if placement is None else Tensor._of(buffer, placement)
            for buffer, type_, placement in zip(
                buffers, flatten(plan.inputs), constants, strict=True
            )
        ]

    # For each kind ------------------------------------------------------------------------

    @abstractmethod
    def interpret(self, plan: Plan, inputs: Sequence[Any]) -> list[Tensor]:
        """Run a call in the context outside, which is current; return its logical outputs.

        ``inputs``: one per declared input: logical tensors or constants, lists of them, or None.
        One of them at least is logical.
        """

    @abstractmethod
    def lower(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the physical tensors that carry ``tensors``, also for constants."""

    @abstractmethod
    def lift(
        self, physical: Sequence[Tensor], types: Sequence[TensorType], call: object
    ) -> list[Tensor]:
        """Return the logical tensors of ``types`` that are carried by what ``lower`` returns."""

    @abstractmethod
    def type_of(self, buffer: Any) -> TensorType:
        """Return the type of the logical tensor that has ``buffer``."""

    @abstractmethod
    def data(self, buffer: Any) -> np.ndarray[Any, Any]:
        """Return the data of a logical tensor that a function reads, or raise."""

    @abstractmethod
    def describe(self, tensor: Tensor) -> str | None:
        """Return a description of a logical tensor, in one line; None to show its data."""

    def distance(self, start: Tensor, stop: Tensor) -> int | None:
        """Return ``stop - start`` of integers, if it is a constant; else None."""
        inner = [x._buffer.tensors[0] if self.holds(x) else x for x in (start, stop)]
        return self.real.interpreter.distance(*inner)  # type: ignore[no-any-return]  # any class's

    def stopped(self, tensor: Tensor, stop: Callable[[Tensor], Tensor]) -> Tensor:
        """Return a logical tensor as a constant: with ``stop`` of what carries it."""
        with use_context(self.context_outside()):
            physical = [stop(each) for each in self.lower([tensor])]
            return self.lift(physical, [tensor.type], tensor._buffer.call)[0]

    def context_outside(self, call: object = None) -> Context:
        """Return the context in which the physical ops of this interpreter run now.

        Raises:
            ArgumentError: the call of the function has ended, or is not ``call`` (None for any).

        """
        context: Context | None = current_context()
        while context is not None and not self._is_on(context.device):
            context = context.outside
        if context is None or context.outside is None or call not in (None, context.call):
            raise self.escaped()
        return context.outside

    def check_call(self, inputs: Sequence[Any], call: object) -> None:
        """Check that logical tensors belong to ``call``; others, and None, are ignored.

        Raises:
            ArgumentError: one belongs to another call, which kept it.

        """
        for tensor in flatten(inputs):
            buffer = tensor._buffer if self.holds(tensor) else None
            if buffer is not None and buffer.call is not call:
                raise self.escaped()

    # Calls --------------------------------------------------------------------------------

    def resolve(self, engine: Engine, plan: Plan) -> list[Step]:  # noqa: ARG002  # as in a trace
        """Resolve a plan of the interpreter's device so that it interprets calls."""
        plan.how, plan.owner = "traced", self.device.owner
        # As outside (`engine.resolution`): without gradient rules, a tape sees the kernels inside.
        spec = plan.spec
        inner = None
        if not any(plan.state.gradient(spec.name, name) for name in spec.input_names):
            inner = entry_by_ops(plan)
        plan.taped = inner is None
        plan.call = partial(self._run, plan)
        return [("interpreted", f"by {self.name}")]

    def _run(self, plan: Plan, *inputs: Any) -> Any:
        context = current_context()
        outside = context.outside
        if context.device is not self.device or outside is None:
            raise self.escaped()
        self.check_call(inputs, context.call)
        entry = None if plan.taped or context.recording is None else entry_by_ops(plan)
        if entry is not None:
            with use_context(context.replace(autocast=None)):
                return entry.function(*inputs, **extra_arguments(plan, entry.asks))
        # In the context of now: the plan is for all calls, whose contexts outside differ.
        with use_context(outside):
            outputs = self._run_outside(plan, inputs)
        return outputs if plan.spec.multiple_outputs else outputs[0]

    def _run_outside(self, plan: Plan, inputs: Sequence[Any]) -> list[Any]:
        """Run a call; the first one decides how further ones run.

        The key of a plan contains the inputs' placements, so all of its calls have constants in
        the same places.
        """
        logical = [tensor._placement.device is self.device for tensor in flatten(inputs)]
        if not any(logical):
            outputs = run_call(plan, inputs)
            if plan.static_shapes:  # a tape saves constants
                plan.outputs = tuple([output._placement for output in outputs])
                plan.output = plan.outputs[0] if outputs else plan.output
            return outputs
        outputs = self.interpret(plan, inputs)
        fast = None
        plain = all(operand.__class__ is Tensor for operand in inputs)
        if plan.taped and plan.static_shapes and plain and (all(logical) or not self.taped):
            fast = self.on_buffers(
                plan,
                [
                    None if is_logical else operand._placement
                    for operand, is_logical in zip(inputs, logical, strict=True)
                ],
            )
        if fast is None:
            return outputs
        # From now on `dispatch` runs it: it wraps the buffer in a tensor of the plan's type, which
        # is that of all calls, since shapes are static and constants are in the same places.
        plan.takes_buffers, plan.call = True, partial(self._run_buffers, fast)
        return [output._buffer for output in outputs]

    def _run_buffers(self, fast: Callable[..., Any], *buffers: Any) -> Any:
        context = innermost()
        outside = context.outside
        if context.device is not self.device or outside is None:
            raise self.escaped()
        with use_context(outside):
            return fast(context.call, *buffers)

    @abstractmethod
    def on_buffers(
        self, plan: Plan, constants: Sequence[Placement | None]
    ) -> Callable[..., Any] | None:
        """Return a function that does what ``interpret`` does, from buffers to buffers.

        The plan then runs without the engine's slow path. ``constants``: for each input None if
        it is logical, else the placement of the constant; none is a list. The function takes the
        call and the buffers. It returns one buffer, or a list of them. None: there is none.
        """

    def expand(self, plan: Plan, inputs: Sequence[Any]) -> list[Tensor] | None:
        """Interpret the calls of the decomposition of ``plan``; None if it has none.

        It is for ``interpret``. No tape inside sees these calls.
        """
        entry = entry_by_ops(plan)
        if entry is None:
            return None
        call = self.call_of(inputs)
        with use_context(self.context(current_context(), call)):
            result = entry.function(*inputs, **extra_arguments(plan, entry.asks))
        outputs = list(result) if plan.spec.multiple_outputs else [result]
        # Without nodes of tapes inside, but physical tensors keep those of tapes outside.
        return self.lift(self.lower(outputs), [output.type for output in outputs], call)

    def escaped(self) -> ArgumentError:
        """Return the error for a logical tensor outside the call of the function."""
        return ArgumentError(
            f"{self.name}: a tensor of a call of the function is used after that call, or in "
            "another thread; return it from the function instead"
        )

    # What has no meaning of its own here has that of the interpreter outside ---------------

    def constants(self, device: Device) -> Device:  # noqa: ARG002  # of real devices
        """Return the device whose cache keeps the function's Python numbers as tensors."""
        found: Device = self.real.interpreter.constants(self.real)
        return found

    def number(
        self, value: Any, dtype: DType | None = None, *, peer: DType | None = None
    ) -> Tensor | None:
        """Return a float of a program that is being traced as a tensor; None for other values."""
        traced: Tensor | None = self.real.interpreter.number(value, dtype, peer=peer)
        return traced

    def fixed(self, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the attributes of a call without floats of a program that is being traced."""
        constants: Mapping[str, Any] = self.real.interpreter.fixed(attributes)
        return constants

    def read(self, variable: Any, held: Tensor) -> Tensor:  # noqa: ARG002  # as in a trace
        """Return the contents of a variable in the context outside."""
        with use_context(_outside()):
            return variable._reading()  # type: ignore[no-any-return]  # of any class

    def assign(self, variable: Any, tensor: Tensor) -> None:
        """Assign a constant to a variable.

        Raises:
            ArgumentError: ``tensor`` is none.

        """
        if self.holds(tensor):
            self.check_call([tensor], current_context().call)
            raise ArgumentError(
                f"{self.name}: the function assigns a tensor that depends on its arguments "
                f"({tensor.type}) to a variable; return it, and assign outside"
            )
        with use_context(_outside()):
            variable._hold(tensor)

    def change(self, tensor: Tensor) -> None:
        """Check that the contents of a tensor may be replaced."""
        _outside().interpreter.change(tensor)

    def placement_of_copy(self, placement: Placement) -> Placement:
        """Return the placement of a copy of a tensor."""
        copied: Placement = _outside().interpreter.placement_of_copy(placement)
        return copied

    def draw(self, generator: Any, type_: TensorType) -> Tensor:  # noqa: ARG002  # as in a trace
        """Return a new key of a generator."""
        with use_context(_outside()):
            return generator.key()  # type: ignore[no-any-return]  # of any class

    def check(self, check: Callable[[], None]) -> None:
        """Let each run of the program that is being traced call ``check`` first."""
        self.real.interpreter.check(check)

    def forbid(self, message: str) -> None:
        """Refuse an action that the function must not do, in the words of a trace outside."""
        self.real.interpreter.forbid(message)
        raise ArgumentError(f"{self.name}: {message}")


def _outside() -> Context:
    """Return the context outside of the interpreter that runs the current one."""
    outside = current_context().outside
    assert outside is not None
    return outside
