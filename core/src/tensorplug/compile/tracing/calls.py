"""What a trace records: kernel calls, and inputs that each run reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from tensorplug.engine.operands import flatten

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorplug.compile.arguments.floats import FloatInput, Floats
    from tensorplug.compile.tracing.values import Constant, Value
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.plans import Plan
    from tensorplug.observers.callsite import CallSite


Operand: TypeAlias = "Value | Constant | list[Value | Constant] | None"


@dataclass(eq=False, slots=True)
class Call:
    """One kernel call of a program: a plan of the real device, and the line of the call.

    ``dequantized``: the operands of the Dequantize whose result it makes, in a trace.
    """

    plan: Plan
    inputs: list[Operand]
    outputs: list[Value]
    site: CallSite | None = None
    dequantized: list[Value | Constant | None] | None = None

    def operands(self) -> list[Value | Constant]:
        """Return the inputs as one list, without absent ones."""
        return flatten(self.inputs)


@dataclass(eq=False, slots=True)
class Read:
    """An input that each run of a program reads from a variable or a generator."""

    source: Any
    fetch: Callable[[], Tensor]
    value: Value


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a finished trace has recorded: for a program."""

    calls: list[Call]
    reads: list[Read]
    floats: Floats
    by_float: Mapping[FloatInput, Value]

    @property
    def numbers(self) -> list[Value]:
        """The inputs of the program that are made of floats, in the order of ``floats.inputs``."""
        return [self.by_float[input_] for input_ in self.floats.inputs]
