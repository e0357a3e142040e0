"""Products in a loop that no carry enters: one product for all steps, before the loop.

The products of a recurrent layer with its inputs are of this kind. Libraries of recurrent layers
do the same by hand: one large product costs less than many small ones, and its call is made once.
(Appleyard, Kocisky and Blunsom, "Optimizing performance of recurrent neural networks on GPUs",
2016, section 3.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.compile.control.sub_programs import SubProgram
from tensorplug.compile.programs.program import Program
from tensorplug.compile.tracing.nested import NestedPlan
from tensorplug.dispatch.context import use_context
from tensorplug.mapping.examples import runs_at_once
from tensorplug.mapping.vmap import vmap
from tensorplug.ops.matrix_products import BATCH_MAT_MUL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tensorplug.compile.tracing.calls import Call
    from tensorplug.compile.tracing.trace import Trace
    from tensorplug.compile.tracing.values import Constant, Value
    from tensorplug.dispatch.tensor import Tensor


MOST_BYTES: Final = 1 << 26
"""What the results for all steps may take."""


def hoist(
    trace: Trace,
    program: SubProgram,
    carries: int,
    xs: Sequence[Tensor],
    captured: Sequence[Value],
) -> tuple[SubProgram, list[Tensor]]:
    """Record in ``trace``, once for all steps, the products that depend on no carry.

    Args:
        trace: the trace that contains the loop.
        program: of one step; its inputs are the carries, slices of ``xs``, and captured values.
        carries: the number of carries.
        xs: the sequences, tensors of ``trace``.
        captured: the captured values, as values of ``trace``.

    Returns:
        The program of the rest of a step, and further sequences, whose slices are inputs after
        those of ``xs``. If there is nothing to record, the same program and an empty list: also
        where ``trace`` does not fold, since a pass back must give the bits of an eager one.

    """
    if not trace.folds:
        return program, []
    end = carries + len(xs)
    chosen = _choose(program, program.inputs[:carries])
    made = {output for call in chosen for output in call.outputs}
    rest = [call for call in program.calls if not made.issuperset(call.outputs)]
    used = {operand for call in rest for operand in call.operands()}.union(program.outputs)
    needed = [output for call in chosen for output in call.outputs if output in used]
    if not needed or not fits(needed, xs):
        return program, []
    part = Program(trace.real, program.inputs[carries:], chosen, needed)
    with use_context(trace.context()):
        same = [trace.tensor(value) for value in captured]
        products = vmap(lambda *slices: part.by_ops([*slices, *same]))(*xs)
    inputs = [*program.inputs[:end], *needed, *program.inputs[end:]]
    return SubProgram(inputs, rest, program.outputs), products


def fits(values: Iterable[Value | Constant], sequences: Sequence[Tensor]) -> bool:
    """Return whether ``values`` of all steps together take at most ``MOST_BYTES``."""
    length = sequences[0].shape[0] if sequences else 0
    return length * sum(value.placement.type.nbytes for value in values) <= MOST_BYTES


def _choose(program: SubProgram, carried: Sequence[Value]) -> list[Call]:
    """Return the products that depend on no carry, with the calls before and after them.

    Before: those that compute their operands. After: elementwise calls on their results alone,
    if the result is not larger than the largest operand.
    """
    carries: set[Any] = set(carried)
    free: list[Call] = []
    for call in program.calls:
        if _runs_at_once(call) and carries.isdisjoint(call.operands()):
            free.append(call)
        else:
            carries.update(call.outputs)
    needed: set[Any] = set()  # for products
    for call in reversed(free):
        if call.plan.spec is BATCH_MAT_MUL or not needed.isdisjoint(call.outputs):
            needed.update(call.operands(), call.outputs)
    made = {output for call in free for output in call.outputs}
    chosen = []
    for call in free:
        if needed.isdisjoint(call.outputs) and _follows(call, needed, made):
            needed.update(call.outputs)
        if not needed.isdisjoint(call.outputs):
            chosen.append(call)
    return chosen


def _runs_at_once(call: Call) -> bool:
    plan = call.plan
    return not isinstance(plan, NestedPlan) and runs_at_once(plan.spec, plan.state)


def _follows(call: Call, chosen: set[Any], made: set[Any]) -> bool:
    """Return whether an elementwise call uses chosen results, and no others that a step makes."""
    if call.plan.spec.expression_rule is None:
        return False
    results = made.intersection(call.operands())
    sizes = (operand.placement.type.nbytes for operand in call.operands())
    largest = max(sizes, default=0)
    return bool(results) and results <= chosen and call.outputs[0].placement.type.nbytes <= largest
