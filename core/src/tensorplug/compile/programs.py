"""Programs: their inputs, calls and results, and their text form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tensorplug.compile.values import Constant, Value
from tensorplug.contract.backend import FlatCall, FlatProgram
from tensorplug.dispatch.tensor import Tensor
from tensorplug.observers.observation import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.compile.tracing import Call
    from tensorplug.dispatch.device import Device
    from tensorplug.engine.plans import Plan

__all__ = ["Program"]


@dataclass(eq=False)
class Program:
    """A flat program of kernel calls on one device.

    ``inputs`` are passed to each run, ``wanted`` are returned. ``slots`` numbers all values, the
    inputs first.
    """

    device: Device
    inputs: Sequence[Value]
    calls: Sequence[Call]
    wanted: Sequence[Value | Constant]
    slots: dict[Value | Constant, int] = field(init=False)

    def __post_init__(self) -> None:
        self.slots = {operand: at for at, operand in enumerate(self.inputs)}
        for call in self.calls:
            for operand in (*call.operands(), *call.outputs):
                self.slots.setdefault(operand, len(self.slots))
        for value in self.wanted:
            self.slots.setdefault(value, len(self.slots))

    def flat(self) -> FlatProgram:
        """Return the program in the form that backends compile."""
        types = [slot.placement.type for slot in self.slots]
        constants = {at: key.buffer for key, at in self.slots.items() if isinstance(key, Constant)}
        wanted = frozenset(self.slots[value] for value in self.wanted)
        return FlatProgram([self._flat(call) for call in self.calls], types, constants, wanted)

    def _flat(self, call: Call) -> FlatCall:
        plan, slots = call.plan, self.slots
        native = plan.how == "native"
        return FlatCall(
            plan.spec.name,
            plan.spec if native else None,
            plan.attributes,
            tuple(
                tuple(slots[value] for value in operand)
                if isinstance(operand, list)
                else None
                if operand is None
                else slots[operand]
                for operand in call.inputs
            ),
            tuple(slots[output] for output in call.outputs),
            plan.spec.multiple_outputs,
            plan.call if native else _on_buffers(plan, call),
        )

    def __repr__(self) -> str:
        lines = [f"<Program on {self.device.name}: {len(self.calls)} calls>"]
        lines += [
            f"  %{at}: {operand.placement.type}, input" for at, operand in enumerate(self.inputs)
        ]
        for key, at in self.slots.items():
            if isinstance(key, Constant):
                lines.append(f"  %{at}: {key.placement.type}, constant")
        lines += [self._line(call) for call in self.calls]
        returned = ", ".join(f"%{self.slots[value]}" for value in self.wanted)
        return "\n".join([*lines, f"  return {returned or 'nothing'}"])

    def _line(self, call: Call) -> str:
        outputs = ", ".join(f"%{self.slots[output]}" for output in call.outputs)
        inputs = ", ".join(f"%{self.slots[operand]}" for operand in call.operands())
        how = "" if call.plan.how == "native" else f" ({call.plan.how})"
        where = "" if call.site is None else f"  # {call.site.short}"
        return f"  {outputs} = {describe(call.plan)} of {inputs}{how}{where}"


def _on_buffers(plan: Plan, call: Call) -> Callable[..., Any]:
    """Return a function that runs a plan, which takes tensors, on buffers."""
    placements = [
        [value.placement for value in operand]
        if isinstance(operand, list)
        else operand and operand.placement
        for operand in call.inputs
    ]

    def tensor(buffer: Any, placement: Any) -> Any:
        if isinstance(placement, list):
            return [tensor(*pair) for pair in zip(buffer, placement, strict=True)]
        return None if placement is None else Tensor._of(buffer, placement)

    def run(*buffers: Any) -> Any:
        outputs = plan.execute([tensor(*pair) for pair in zip(buffers, placements, strict=True)])
        results = [output._buffer for output in outputs]
        return results if plan.spec.multiple_outputs else results[0]

    return run
