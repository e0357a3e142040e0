"""Loops and branches of lists of tensors: eager, in a trace, and with their gradients.

Outside of compiled functions they are plain Python, which the tape records. In a compiled function
each is one call of its program. The gradient of such a loop is a loop over the steps in the
opposite order, whose steps compute those of the function again, from the carries that the loop
had before them; the gradient of a branch computes the branch again. So derivatives of any order
are loops and branches, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.autodiff.tape import OutputNode
from tensorplug.compile.control.calls import (
    Steps,
    slice_types,
    trace_scan,
    trace_switch,
    trace_while,
)
from tensorplug.compile.control.lifted import (
    differs,
    holds_for_any,
    is_known,
    keep_finished,
    lift_scan,
    lift_switch,
    lift_types,
    lift_while,
)
from tensorplug.compile.control.nodes import ControlNode, UnboundedNode, zeros_of
from tensorplug.compile.control.sub_traces import trace_function
from tensorplug.compile.tracing.trace import Trace
from tensorplug.contract import dtypes as dt
from tensorplug.contract.dtypes import INEXACT
from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.dispatch.eager import EAGER
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.interpreters import Interpreter
from tensorplug.ops import ranges
from tensorplug.ops.elementwise import arithmetic, casting, comparison
from tensorplug.ops.stepping import run_one_by_one

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.compile.control.calls import Flat, Found
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.device import Placement

__all__ = ["count", "is_known", "result_types", "run_loop", "scan", "switch", "while_loop"]


def _in_program() -> bool:
    """Return whether a function is traced, perhaps with interpreters inside."""
    context = current_context()
    while isinstance(context.interpreter, Interpreter):
        assert context.outside is not None
        context = context.outside
    return isinstance(context.interpreter, Trace)


def scan(steps: Steps, init: Sequence[Tensor], xs: Sequence[Tensor]) -> list[Tensor]:
    """Run steps, at least one, over slices of ``xs``; return carries, then stacked results."""
    recording, count = current_context().recording, len(init)
    if not _in_program():
        return run_one_by_one(steps.f, init, xs, steps.length, reverse=steps.reverse)
    if recording is None:
        return _record_scan(steps, init, xs)[0]

    def step(carried: list[Tensor]) -> list[Tensor]:
        return [*steps.f(carried), *carried[:count]]

    saving = steps._replace(f=step)
    tensors, nodes = _record_scan(saving, init, xs)
    results = len(tensors) - count
    node = _ScanNode([*init, *xs], nodes, tensors, recording)
    node.steps, node.xs = saving, list(xs)
    node.before = [(tensor._buffer, tensor._placement) for tensor in tensors[results:]]
    return node.attach(tensors)[:results]


def _record_scan(steps: Steps, init: Sequence[Tensor], xs: Sequence[Tensor]) -> Found:
    trace = current_context().interpreter
    if isinstance(trace, Trace):
        return trace_scan(trace, steps, init, xs)
    return lift_scan(steps, init, xs, scan)


def run_loop(
    proceed: Callable[..., list[Tensor]],
    f: Flat,
    init: Sequence[Tensor],
    xs: Sequence[Tensor],
    reverse: bool,  # noqa: FBT001  # the form of a handler
) -> list[Tensor]:
    """Run a loop of ops (``ops.stepping``) as one call where a program is traced."""
    if not _in_program():
        return proceed(f, init, xs, reverse)
    return scan(Steps(f, xs[0].shape[0], reverse, "a kernel"), init, xs)


def switch(
    index: Tensor, branches: Sequence[Flat], operands: Sequence[Tensor], who: str
) -> list[Tensor]:
    """Call the branch with the number ``index``, or the nearest one."""
    context = current_context()
    trace, recording = context.interpreter, context.recording
    if is_known(index):
        at = min(max(int(index), 0), len(branches) - 1)
        return branches[at](list(operands))
    if differs(index):
        return _select(index, branches, operands)
    if isinstance(trace, Trace):
        results, nodes = trace_switch(trace, index, branches, operands, who)
    else:
        results, nodes = lift_switch(index, branches, operands, who, switch)
    if recording is None:
        return results
    node = _SwitchNode(operands, nodes, results, recording)
    node.index, node.branches, node.operands, node.who = index, branches, list(operands), who
    return node.attach(results)


def _select(index: Tensor, branches: Sequence[Flat], operands: Sequence[Tensor]) -> list[Tensor]:
    """Call all branches, and take the results of another one for each example."""
    if len(branches) - 1 > index.dtype.max:
        index = casting.astype(index, dt.int32)
    selected = branches[0](list(operands))
    for at, branch in enumerate(branches[1:], 1):
        chosen = comparison.greater_equal(index, at)
        selected = keep_finished(chosen, branch(list(operands)), selected)
    return selected


def while_loop(
    condition: Flat, body: Flat, init: Sequence[Tensor], most: int | None, who: str
) -> list[Tensor]:
    """Call ``body`` while the condition holds, at most ``most`` times."""
    context = current_context()
    trace, recording = context.interpreter, context.recording
    if most == 0:
        return list(init)
    if not _in_program():
        return _while_eagerly(condition, body, init, most)
    if isinstance(trace, Trace):
        results, nodes = trace_while(trace, condition, body, init, most, who)
    else:
        results, nodes = lift_while(condition, body, init, most, who, while_loop)
    if recording is None:
        return results
    if most and (nodes or any(tensor._node is not None for tensor in init)):
        return _bounded(condition, body, init, most, who)  # the loop above becomes dead code
    return UnboundedNode(init, nodes, results, recording).attach(results)


def _while_eagerly(
    condition: Flat, body: Flat, init: Sequence[Tensor], most: int | None
) -> list[Tensor]:
    now, steps = list(init), 0
    while most is None or steps < most:
        (holds,) = condition(now)
        if not holds_for_any(holds):
            break
        new = body(now)
        now = keep_finished(holds, new, now) if differs(holds) else new
        steps += 1
    return now


def count(
    begin: int | Tensor, end: int | Tensor, f: Flat, init: Sequence[Tensor], who: str
) -> list[Tensor]:
    """Call ``f`` with each integer from ``begin`` to ``end`` - 1, and what it returned before."""
    if isinstance(begin, int) and isinstance(end, int):
        length = max(end - begin, 0)
        if not length:
            return list(init)
        if _in_program():
            numbers = ranges.arange(begin, end, dtype=dt.int32)

            def step(now: list[Tensor]) -> list[Tensor]:
                return f([now[-1], *now[:-1]])

            return scan(Steps(step, length, reverse=False, who=who), init, [numbers])
        now = list(init)
        for at in range(begin, end):
            now = f([as_tensor(at, dt.int32), *now])
        return now

    def holds(now: list[Tensor]) -> list[Tensor]:
        return [comparison.less(now[0], now[1])]

    def advance(now: list[Tensor]) -> list[Tensor]:
        return [arithmetic.add(now[0], 1), now[1], *f([now[0], *now[2:]])]

    bounds = [as_tensor(bound, dt.int32) for bound in (begin, end)]
    return while_loop(holds, advance, [*bounds, *init], None, who)[2:]


def result_types(
    f: Flat, init: Sequence[Tensor], xs: Sequence[Tensor], who: str
) -> list[TensorType]:
    """Return the types of the results of ``f`` for carries and slices, without their data."""
    context = current_context()
    trace = context.interpreter
    if isinstance(trace, Interpreter):
        return lift_types(f, init, xs, who, result_types)
    types = [*[tensor.type for tensor in init], *slice_types(xs)]
    if trace is not EAGER:
        return trace_function(trace, f, types, who=who, recording=context.recording).program.types
    engine: Any = engine_of(context)
    trace = Trace(engine, engine.devices.of(context))
    try:
        return trace_function(trace, f, types, who=who, recording=context.recording).program.types
    finally:
        trace.finish()


def _bounded(
    condition: Flat, body: Flat, init: Sequence[Tensor], most: int, who: str
) -> list[Tensor]:
    """Run a loop that can be differentiated: ``most`` steps, which may leave all as it is."""

    def step(state: list[Tensor]) -> list[Tensor]:
        holds = casting.astype(condition(state)[0], "int32")
        return switch(holds, [list, body], state, who)

    return scan(Steps(step, most, reverse=False, who=who), init, [])


# Gradients ------------------------------------------------------------------------------------


class _ScanNode(ControlNode):
    """A loop on the tape.

    The last results of its steps are the carries before them, which are stacked in ``before``.
    """

    __slots__ = ("before", "steps", "xs")

    steps: Steps
    before: list[tuple[Any, Placement]]  # without nodes, which would be a cycle
    xs: list[Tensor]

    def _saved(self) -> list[Tensor]:
        """Return the carries before each step, as results of the loop."""
        first = self.count - len(self.before)
        return [
            Tensor._of(
                buffer,
                placement,
                OutputNode(self, at) if placement.type.dtype in INEXACT else None,
            )
            for at, (buffer, placement) in enumerate(self.before, first)
        ]

    def gradients(self, dys: list[Tensor | None]) -> list[Tensor | None]:
        """Run through the steps in the opposite order; return the gradients of all parents."""
        count = len(self.before)
        carried = [at for at, type_ in enumerate(self.outputs[:count]) if type_.dtype in INEXACT]
        incoming = [
            (at, dy)
            for at, dy in enumerate(dys[count:], count)
            if dy is not None and self.outputs[at].dtype in INEXACT
        ]
        sums = len(self.nodes)
        ends = len(carried) + sums

        def step(now: list[Tensor]) -> list[Tensor]:
            dcarries, totals, rest = now[: len(carried)], now[len(carried) : ends], now[ends:]
            arguments = rest[: len(rest) - len(incoming)]
            cotangents = [
                *zip(carried, dcarries, strict=True),
                *zip([at for at, _ in incoming], rest[len(arguments) :], strict=True),
            ]
            results = self.pull(self.steps.f, arguments, cotangents)
            more = results[len(results) - sums :]
            return [
                *results[: len(carried)],
                *[arithmetic.add(total, one) for total, one in zip(totals, more, strict=True)],
                *results[len(carried) : len(results) - sums],
            ]

        begin = [zeros_of(self.outputs[at]) if dys[at] is None else dys[at] for at in carried]
        begin += [zeros_of(type_) for type_ in self.nodes.values()]
        backward = self.steps._replace(f=step, reverse=not self.steps.reverse)
        sequences = [*self._saved(), *self.xs, *[dy for _, dy in incoming]]
        results = scan(backward, begin, sequences)  # type: ignore[arg-type]  # there is no None
        of_xs = iter(results[ends:])
        of_carries = dict(zip(carried, results, strict=False))
        return [
            *[of_carries.get(at) for at in range(count)],
            *[next(of_xs) if x.dtype in INEXACT else None for x in self.xs],
            *results[len(carried) : ends],
        ]


class _SwitchNode(ControlNode):
    """A choice on the tape."""

    __slots__ = ("branches", "index", "operands", "who")

    who: str
    index: Tensor
    branches: Sequence[Flat]
    operands: list[Tensor]

    def gradients(self, dys: list[Tensor | None]) -> list[Tensor | None]:
        """Choose the gradients of a branch; return those of all parents."""
        incoming = [(at, dy) for at, dy in enumerate(dys) if dy is not None]
        count = len(self.operands)

        def back(branch: Flat) -> Flat:
            def pull(now: list[Tensor]) -> list[Tensor]:
                cotangents = zip([at for at, _ in incoming], now[count:], strict=True)
                return self.pull(branch, now[:count], list(cotangents))

            return pull

        gradients_of_all = iter(
            switch(
                self.index,
                [back(branch) for branch in self.branches],
                [*self.operands, *[dy for _, dy in incoming]],
                self.who,
            )
        )
        of_operands = [
            next(gradients_of_all) if x.dtype in INEXACT else None for x in self.operands
        ]
        return [*of_operands, *gradients_of_all]
