"""Sub-programs: what a loop does in each step, or a branch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tensorplug.compile.fusion.epilogues import add_epilogues
from tensorplug.compile.fusion.weights import fold_dequantized
from tensorplug.compile.programs.program import Program
from tensorplug.compile.tracing.passes import eliminate_common_calls, eliminate_dead_calls
from tensorplug.dispatch.context import current_context

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.compile.tracing.calls import Call
    from tensorplug.compile.tracing.nested import NestedPlan
    from tensorplug.compile.tracing.values import Constant, Value
    from tensorplug.contract.backend import Buffer
    from tensorplug.contract.spec import TensorType
    from tensorplug.engine.engine import Engine


@dataclass(frozen=True, eq=False, slots=True)
class SubProgram:
    """Calls without common or dead ones, from inputs to outputs."""

    inputs: Sequence[Value]
    calls: Sequence[Call]
    outputs: Sequence[Value | Constant]

    @classmethod
    def of(
        cls, inputs: Sequence[Value], calls: Sequence[Call], outputs: Sequence[Value | Constant]
    ) -> SubProgram:
        """Return the sub-program of recorded calls."""
        common, results = eliminate_common_calls(calls, outputs)
        return cls(inputs, eliminate_dead_calls(common, results), results)

    @property
    def types(self) -> list[TensorType]:
        """The types of the outputs."""
        return [output.placement.type for output in self.outputs]

    def returning(self, places: Sequence[int]) -> SubProgram:
        """Return the sub-program of the outputs at ``places``."""
        outputs = [self.outputs[at] for at in places]
        return SubProgram(self.inputs, eliminate_dead_calls(self.calls, outputs), outputs)

    def used(self) -> list[int]:
        """Return the positions of the inputs on which the outputs depend."""
        used: set[Any] = set(self.outputs)
        for call in self.calls:
            used.update(call.operands())
        return [at for at, value in enumerate(self.inputs) if value in used]

    def taking(self, places: Sequence[int]) -> SubProgram:
        """Return the sub-program without other inputs than those at ``places``."""
        return SubProgram([self.inputs[at] for at in places], self.calls, self.outputs)

    def __repr__(self) -> str:
        return f"<{len(self.calls)} calls>"


def make_part(
    engine: Engine,
    make: Callable[..., Any],
    plan: NestedPlan,
    name: str,
    body: SubProgram,
    donated: int = 0,
) -> Callable[[], Callable[[list[Buffer]], list[Buffer]]]:
    """Prepare a sub-program of ``plan``, and register it as the part ``name``.

    Returns a function ``begin()``, which looks for observers in the current context and returns
    the function that runs the sub-program: from a list of input buffers, which it empties, to the
    output buffers. ``donated``: how many of the first inputs it may overwrite if only that list
    refers to them. ``make``: as in ``NestedPlan.prepare``.
    """
    calls = fold_dequantized(engine, body.calls, body.outputs, [])
    calls = add_epilogues(engine, calls, body.outputs)
    program = Program(plan.device, body.inputs, calls, body.outputs)
    plan.parts.setdefault(name, program)
    executable = make(engine, program, small=True, donated=body.inputs[:donated])

    def run(buffers: list[Buffer]) -> list[Buffer]:
        results: list[Buffer] = executable.run(buffers, consumed=buffers)
        return results

    def begin() -> Callable[[list[Buffer]], list[Buffer]]:
        observers = (*current_context().observers, *engine.observers)
        return partial(executable.run_observed, observers) if observers else run

    return begin
