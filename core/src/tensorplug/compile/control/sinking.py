"""Sums over the steps of a loop, computed once after it: mostly gradients of weights.

If each step adds a product to a carry, and nothing else uses that carry, one product of the
factors of all steps gives the sum: ``sum(a[t].T @ b[t])`` is ``a.T @ b`` of all rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.compile.control.hoisting import fits
from tensorplug.compile.control.sub_programs import SubProgram
from tensorplug.dispatch.calls import dispatch
from tensorplug.dispatch.context import use_context
from tensorplug.ops import movement, reduction
from tensorplug.ops.elementwise import arithmetic
from tensorplug.ops.matrix_products import BATCH_MAT_MUL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.compile.tracing.calls import Call
    from tensorplug.compile.tracing.trace import Trace
    from tensorplug.dispatch.tensor import Tensor


class _Total(NamedTuple):
    """A carry to which each step adds the result of ``call``."""

    carry: int
    call: Call


class Sunk(NamedTuple):
    """The program of a step without sums, and what these need.

    ``kept``: the positions of the other carries. ``totals``: those of the sums. ``sequences``:
    by the values of a step, those that the loop gets. ``stacked``: values that the program
    returns behind its other results.
    """

    program: SubProgram
    kept: list[int]
    totals: list[_Total]
    sequences: dict[Any, Tensor]
    stacked: list[Any]

    def finish(
        self, trace: Trace, init: Sequence[Tensor], outputs: Sequence[Tensor]
    ) -> list[Tensor]:
        """Return the results of the loop with all carries; ``outputs``: those with ``program``."""
        end = len(outputs) - len(self.stacked)
        known = {**self.sequences, **dict(zip(self.stacked, outputs[end:], strict=True))}
        carries = dict(zip(self.kept, outputs, strict=False))
        with use_context(trace.context()):
            for at, call in self.totals:
                carries[at] = arithmetic.add(init[at], _sum(call, known))
        return [*[carries[at] for at in range(len(init))], *outputs[len(self.kept) : end]]


def sink(trace: Trace, program: SubProgram, carries: int, sequences: Sequence[Tensor]) -> Sunk:
    """Return the program of a step without the sums of products that are made after the loop.

    There are none where ``trace`` does not fold: a pass back must give the bits of an eager one.

    Args:
        trace: the trace that contains the loop.
        program: of one step; its inputs are the carries, slices of ``sequences``, and captured
            values.
        carries: the number of carries.
        sequences: tensors of ``trace``.

    """
    slices = program.inputs[carries : carries + len(sequences)]
    by_slice: dict[Any, Tensor] = dict(zip(slices, sequences, strict=True))
    made = {output for call in program.calls for output in call.outputs}
    sums = _find(program, carries, made.union(by_slice)) if trace.folds else []
    products = [total for total in sums if total.call.plan.spec is BATCH_MAT_MUL]
    operands = dict.fromkeys(each for total in products for each in total.call.operands())
    stacked = [each for each in operands if each not in by_slice]
    if not fits(stacked, sequences):
        stacked, products = [], []
    # A sum alone is not worth the memory of what it adds.
    known = {*by_slice, *stacked}
    totals = [each for each in sums if products and known.issuperset(each.call.operands())]
    gone = {total.carry for total in totals}
    kept = [at for at in range(carries) if at not in gone]
    outputs = [*[program.outputs[at] for at in kept], *program.outputs[carries:], *stacked]
    inputs = [value for at, value in enumerate(program.inputs) if at not in gone]
    whole = SubProgram(inputs, program.calls, outputs)
    return Sunk(whole.returning(range(len(outputs))), kept, totals, by_slice, stacked)


def _find(program: SubProgram, carries: int, differing: set[Any]) -> list[_Total]:
    """Return the carries that are sums of products, or of sums, of values of each step.

    ``differing``: slices, and what a step computes.
    """
    makers: dict[Any, Call] = {output: call for call in program.calls for output in call.outputs}
    uses: dict[Any, int] = {}
    for operand in [each for call in program.calls for each in call.operands()]:
        uses[operand] = uses.get(operand, 0) + 1
    for output in program.outputs:
        uses[output] = uses.get(output, 0) + 1
    totals = []
    for at in range(carries):
        carry, output = program.inputs[at], program.outputs[at]
        addition = makers.get(output)
        if addition is None or addition.plan.spec is not arithmetic.ADD:
            continue
        others = [each for each in addition.operands() if each is not carry]
        if len(others) != 1 or uses[carry] != 1 or uses[output] != 1:
            continue
        call = makers.get(others[0])
        if (
            call is not None
            and others[0].placement.type == carry.placement.type
            and _is_summed(call)
            and differing.issuperset(call.operands())
        ):
            totals.append(_Total(at, call))
    return totals


def _is_summed(call: Call) -> bool:
    """Return whether the sum of a call's results is one call of its kernel."""
    spec, attributes = call.plan.spec, call.plan.attributes
    return spec is reduction.SUM or (
        spec is BATCH_MAT_MUL
        and all(each.placement.type.rank == 2 for each in call.operands())
        and attributes["transpose_a"]
        and not attributes["transpose_b"]
    )


def _sum(call: Call, known: dict[Any, Tensor]) -> Tensor:
    """Return the sum of a call's results over all steps; ``known``: its operands, stacked."""
    operands = [known[operand] for operand in call.operands()]
    attributes = call.plan.attributes
    if call.plan.spec is BATCH_MAT_MUL:
        rows = [movement.reshape(x, (-1, x.shape[-1])) for x in operands]
        return dispatch(BATCH_MAT_MUL, *rows, **attributes)
    axes = (0, *[axis + 1 for axis in attributes["axis"]])
    total = dispatch(reduction.SUM, *operands, axis=axes, keep_dims=False)
    return movement.reshape(total, call.outputs[0].placement.type.shape)
