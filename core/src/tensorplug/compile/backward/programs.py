"""Backward passes as programs: the gradient rules of a tape run once without data.

The tapes of a training loop all look alike: the same plans, connected in the same way. A program
of the backward pass of one of them does for the next. It runs on the buffers that the tape saved,
without the tensors, ops and dispatch in between.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.autodiff.backpropagation import FunctionNode, walk
from tensorplug.autodiff.recipes import placement_of
from tensorplug.autodiff.tape import CallNode, Leaf, OutputNode, buffer_of
from tensorplug.compile.backward.tapes import Pattern, describe, outline
from tensorplug.compile.programs.executable import Executable
from tensorplug.compile.programs.program import Program
from tensorplug.compile.tracing.passes import eliminate_common_calls, eliminate_dead_calls
from tensorplug.compile.tracing.trace import Trace
from tensorplug.dispatch.commitment import follow
from tensorplug.dispatch.context import current_context, engine_of, use_context
from tensorplug.dispatch.device import Usage, now
from tensorplug.dispatch.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.autodiff.tape import Node
    from tensorplug.compile.backward.tapes import Starts, Tape
    from tensorplug.compile.tracing.values import Value
    from tensorplug.contract.backend import Buffer
    from tensorplug.dispatch.device import Device, Placement
    from tensorplug.engine.engine import Engine


KEPT: Final = 256
"""Programs, and keys of tapes seen once, per device; those not used lately are forgotten."""

LARGE: Final = 1 << 14
"""Elements of a saved tensor from which the first tape runs as a program, not the second.

Groups of calls may round differently from the calls one by one, so whether a result comes from a
group must not depend on how often a tape was seen: programs of larger tapes have groups, those of
smaller tapes have none. These run faster without a program if they are seen once.
"""

_ONCE: Final = "seen once"
_NEVER: Final = "no program"


class _BackwardProgram(NamedTuple):
    """A program of the cotangents of the results and of the saved tensors.

    ``reached``: for each of its outputs, the number of the leaf whose cotangent it is.
    ``pattern``: of the tapes that it serves, if they can be known by one.
    """

    usage: Usage
    executable: Executable
    reached: list[int]
    placements: list[Placement]
    pattern: Pattern | None


def run_backward(
    proceed: Callable[..., dict[Node, Tensor]], starts: Starts, leaves: Sequence[Node]
) -> dict[Node, Tensor]:
    """Return the cotangents of the leaves that have one, by a program if there is one."""
    context = current_context()
    engine: Engine = engine_of(context)  # type: ignore[assignment]  # of the class that has this
    if context.recording is not None or context.observers or engine.observers:
        return proceed(starts, leaves)
    first = starts[0][1]
    if first._placement.committed:
        context = follow(context, [first], "backward")
    device = engine.devices.of(context)
    if not device.is_real:
        return proceed(starts, leaves)
    glance = outline(starts, leaves)
    recent: _BackwardProgram | None = device.recent.get(glance)
    if recent is not None and recent.pattern is not None:
        buffers = recent.pattern.match(starts, leaves)
        if buffers is not None:
            return _run(recent, starts, leaves, buffers)
    tape = describe(starts, leaves)
    known = None if tape is None else _find(engine, device, tape, starts, leaves)
    if tape is None or known is None:
        return proceed(starts, leaves)
    if known.pattern is not None:
        with device.lock:
            remembered: _BackwardProgram | None = device.programs.get(tape.key)
            if remembered is known:  # else the registry has changed
                device.remember(device.recent, glance, known, KEPT)
    return _run(known, starts, leaves, [buffer for buffer, _ in tape.saved])


def _find(
    engine: Engine, device: Device, tape: Tape, starts: Starts, leaves: Sequence[Node]
) -> _BackwardProgram | None:
    """Return the program of a tape; None if it has none, or is seen for the first time."""
    known = device.programs.get(tape.key)
    if known is None or known is _ONCE:
        large = _is_large(tape, starts)
        least = device.least_group()
        if not large and least is not None and least < LARGE:
            return None  # single calls may run as groups, which a program would not have
        if known is None and not large:
            device.remember(device.programs, tape.key, _ONCE, KEPT)
            return None
        state = engine.registry.state
        known = _trace(engine, device, tape, starts, leaves, fuses=large)
        with device.lock:
            if engine.registry.state is state and not device.closed:
                device.remember(device.programs, tape.key, known, KEPT)
    return None if known is _NEVER else known


def _is_large(tape: Tape, starts: Starts) -> bool:
    """Return whether a tensor of a tape has ``LARGE`` elements."""
    placements = [placement for _, placement in tape.saved]
    placements += [dy._placement for _, dy in starts]
    for call in tape.calls:
        placements += call.plan.outputs if isinstance(call, CallNode) else ()
    return any(placement.type.size >= LARGE for placement in placements)


def _trace(
    engine: Engine,
    device: Device,
    tape: Tape,
    starts: Starts,
    leaves: Sequence[Node],
    *,
    fuses: bool,
) -> Any:
    """Return the program of a tape; ``_NEVER`` if it has none, since its rules need data."""
    placements = [placement for _, placement in tape.saved]
    placements += [dy._placement for _, dy in starts]
    if any(placement.device is not device for placement in placements):
        return _NEVER
    committed = any(placement.committed for placement in placements)
    trace = Trace(engine, device, folds=False)
    entered = [trace.enter(dy.type) for _, dy in starts]
    stand_ins = _StandIns(trace, tape, leaves)
    nodes = stand_ins.made
    try:
        with use_context(trace.context()):
            cotangents = walk(
                [(nodes[node], dy) for (node, _), (_, dy) in zip(starts, entered, strict=True)],
                [nodes[leaf] for leaf in leaves if leaf in nodes],
            )
        reached = [at for at, leaf in enumerate(leaves) if nodes.get(leaf) in cotangents]
        results = [trace.operand(cotangents[nodes[leaves[at]]]) for at in reached]
    except Exception:  # noqa: BLE001  # the rule itself raises it again, on the data
        return _NEVER
    finally:
        recorded = trace.finish()
    if recorded.reads or recorded.floats.operations:
        return _NEVER
    calls, results = eliminate_common_calls(recorded.calls, results)
    inputs = [value for value, _ in entered] + stand_ins.values
    program = Program(device, inputs, eliminate_dead_calls(calls, results), results)
    return _BackwardProgram(
        Usage(),
        Executable(engine, program, fuses=fuses),
        reached,
        [value.placement.as_committed(committed) for value in results],
        Pattern.of(tape, starts, leaves),
    )


class _StandIns:
    """Nodes like those of a tape, whose saved tensors are inputs of a program.

    ``made``: by the nodes for which they stand. ``values``: of the saved tensors, in the order of
    ``Tape.saved``. Only the first of those that are the result of one node is used.
    """

    def __init__(self, trace: Trace, tape: Tape, leaves: Sequence[Node]) -> None:
        self._trace = trace
        self._number = tape.number
        self._results: dict[Node, Tensor] = {}
        self.values: list[Value] = []
        self.made: dict[Node, Node] = {}
        targets = set(leaves)
        entered: dict[Node, Any] = {call: self._enter_all(call) for call in tape.calls}
        for node in sorted(tape.number, key=attrgetter("order")):  # parents first
            self.made[node] = self._make(node, node in targets, entered.get(node))

    def _make(self, node: Node, is_target: bool, saved: Any) -> Node:  # noqa: FBT001  # of this class
        made: Node
        parents = tuple(
            None if parent is None else self.made.get(parent) for parent in node.parents
        )
        if is_target:
            made = Leaf(())
        elif isinstance(node, CallNode):
            call: CallNode = object.__new__(CallNode)  # there are no outputs yet to save
            call.parents, call.plan = parents, node.plan
            call.recipe, call.saved = saved
            made = call
        elif isinstance(node, FunctionNode):
            made = node.stand_in(parents, saved)
        elif isinstance(node, OutputNode) and parents[0] is not None:
            made = OutputNode(parents[0], node.index)
        else:  # the leaf of an inner tape, or an output of a call before all leaves
            made = Leaf(parents)
        made.order = node.order
        return made

    def _enter_all(self, call: CallNode | FunctionNode) -> Any:
        """Return the recipe and the saved values of the call that stands for ``call``.

        Return the saved tensors for a compiled function.
        """
        if isinstance(call, FunctionNode):
            return [self._enter(placement, None) for _, placement in call.values()]
        count = len(call.recipe.inputs)
        saved: list[Any] = []
        for at, placement in enumerate(call.placements):
            nodes: Sequence[Node | None] = [None if call.count > 1 else call]
            if at < count:
                nodes = call.parents[call.recipe.firsts[at] :]
            if isinstance(placement, list):
                pairs = zip(placement, nodes, strict=False)
                saved.append([self._enter(*pair) for pair in pairs])
            else:
                saved.append(None if placement is None else self._enter(placement, nodes[0]))
        recipe = call.recipe.at([placement_of(tensors) for tensors in saved])
        return recipe, [buffer_of(tensors) for tensors in saved]

    def _enter(self, placement: Placement, node: Node | None) -> Tensor:
        """Return the tensor of a saved value, which is the result of ``node``, if it has one."""
        value, tensor = self._trace.enter(placement.type)
        self.values.append(value)
        if node is None or node not in self._number:
            return tensor
        return self._results.setdefault(node, tensor)


def _run(
    known: _BackwardProgram,
    starts: Starts,
    leaves: Sequence[Node],
    saved: list[Buffer],
) -> dict[Node, Tensor]:
    known.usage.last = now()
    outputs = known.executable.run([dy._buffer for _, dy in starts] + saved)
    return {
        leaves[at]: Tensor._of(buffer, placement)
        for at, buffer, placement in zip(known.reached, outputs, known.placements, strict=True)
    }
