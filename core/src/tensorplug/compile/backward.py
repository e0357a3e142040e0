"""Backward passes as programs: the gradient rules of a tape run once without data.

The tapes of a training loop all look alike: the same plans, connected in the same way. A program
of the backward pass of one of them does for the next. It runs on the buffers that the tape saved,
without the tensors, ops and dispatch in between.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.autodiff.backpropagation import walk
from tensorplug.autodiff.tape import CallNode, Leaf, OutputNode
from tensorplug.compile.passes import eliminate_common_calls, eliminate_dead_calls
from tensorplug.compile.programs import Program
from tensorplug.compile.running import Executable
from tensorplug.compile.tracing import Trace
from tensorplug.dispatch.context import engine_of, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.operands import flatten

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tensorplug.autodiff.tape import Node
    from tensorplug.compile.values import Value
    from tensorplug.contract.backend import Buffer
    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.device import Device, Placement
    from tensorplug.engine.engine import Engine

__all__ = ["run_backward"]

KEPT: Final = 256
"""Programs, and keys of tapes seen once, per device; the oldest are forgotten first."""

LARGE: Final = 1 << 14
"""Elements of a saved tensor from which the first tape runs as a program, not the second.

Groups of calls may round differently from the calls one by one, so whether a result comes from a
group must not depend on how often a tape was seen: programs of larger tapes have groups, those of
smaller tapes have none. These run faster without a program if they are seen once.
"""

_ONCE: Final = "seen once"
_NEVER: Final = "no program"

Saved = Any  # (buffer, placement), or (buffer, placement, node)


class _Tape(NamedTuple):
    """The part of a tape between the results and the leaves.

    ``key``: what its program depends on. ``nodes``: each before its parents. ``saved``: the saved
    tensors of the nodes, in their order.
    """

    key: Hashable
    nodes: list[Node]
    saved: list[Saved]


class _BackwardProgram(NamedTuple):
    """A program of the cotangents of the results and of the saved tensors.

    ``reached``: for each of its outputs, the number of the leaf whose cotangent it is.
    """

    executable: Executable
    reached: list[int]
    placements: list[Placement]


def run_backward(
    context: Context, starts: Sequence[tuple[Node, Tensor]], leaves: Sequence[Node]
) -> dict[Node, Tensor] | None:
    """Return the cotangents of the leaves that have one; None if no program is to be used."""
    engine: Engine = engine_of(context)  # type: ignore[assignment]  # of the class that has this
    if context.recording is not None or context.observers or engine.observers:
        return None
    device = engine.devices.of(context)
    if device.trace is not None:
        return None
    tape = _describe(starts, leaves)
    if tape is None:
        return None
    known = device.programs.get(tape.key)
    if known is None or known is _ONCE:
        large = _is_large(tape, starts)
        groups = device.capabilities.groups
        if not large and groups is not None and groups.least_group < LARGE:
            return None  # single calls may run as groups, which a program would not have
        if known is None and not large:
            device.remember(device.programs, tape.key, _ONCE, KEPT)
            return None
        state = engine.registry.state
        known = _trace(engine, device, tape, starts, leaves, fuses=large)
        with device.lock:
            if engine.registry.state is state and not device.closed:
                device.remember(device.programs, tape.key, known, KEPT)
    return None if known is _NEVER else _run(known, starts, leaves, tape.saved)


def _is_large(tape: _Tape, starts: Sequence[tuple[Node, Tensor]]) -> bool:
    """Return whether a tensor of a tape has ``LARGE`` elements."""
    placements = [saved[1] for saved in tape.saved]
    placements += [dy._placement for _, dy in starts]
    for node in tape.nodes:
        if isinstance(node, CallNode):
            placements += node.plan.outputs
    return any(placement.type.size >= LARGE for placement in placements)


def _trace(
    engine: Engine,
    device: Device,
    tape: _Tape,
    starts: Sequence[tuple[Node, Tensor]],
    leaves: Sequence[Node],
    *,
    fuses: bool,
) -> Any:
    """Return the program of a tape; ``_NEVER`` if it has none, since its rules need data."""
    placements = [placement for _, placement, *_ in tape.saved]
    placements += [dy._placement for _, dy in starts]
    if any(placement.device is not device for placement in placements):
        return _NEVER
    trace = Trace(engine, device, folds=False)
    entered = [trace.enter(dy.type) for _, dy in starts]
    stand_ins = _StandIns(trace, tape.nodes, leaves)
    nodes = stand_ins.made
    try:
        with use_context(trace.context()):
            found = walk(
                [(nodes[node], dy) for (node, _), (_, dy) in zip(starts, entered, strict=True)],
                [nodes[leaf] for leaf in leaves if leaf in nodes],
            )
        reached = [at for at, leaf in enumerate(leaves) if nodes.get(leaf) in found]
        wanted = [trace.operand(found[nodes[leaves[at]]]) for at in reached]
    except Exception:  # noqa: BLE001  # the rule itself raises it again, on the data
        return _NEVER
    finally:
        recorded = trace.finish()
    if recorded.reads or recorded.held or recorded.floats.operations:
        return _NEVER
    calls, wanted = eliminate_common_calls(recorded.calls, wanted)
    inputs = [value for value, _ in entered] + stand_ins.values
    program = Program(device, inputs, eliminate_dead_calls(calls, wanted), wanted)
    return _BackwardProgram(
        Executable(engine, program, fuses=fuses), reached, [value.placement for value in wanted]
    )


class _StandIns:
    """Nodes like those of a tape, whose saved tensors are inputs of a program.

    ``made``: by the nodes for which they stand. ``values``: of the saved tensors, in the order of
    ``_Tape.saved``.
    """

    def __init__(self, trace: Trace, nodes: Sequence[Node], leaves: Sequence[Node]) -> None:
        self._trace = trace
        self.values: list[Value] = []
        self.made: dict[Node, Node] = {}
        targets = set(leaves)
        entered: dict[Node, Any] = {
            node: (self._enter(node.saved_inputs), self._enter(node.saved_outputs))
            for node in nodes
            if isinstance(node, CallNode) and node not in targets
        }
        for node in sorted(nodes, key=attrgetter("order")):  # parents first
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
            call.parents, call.plan, call.recipe = parents, node.plan, node.recipe
            call.saved_inputs, outputs = saved
            call.saved_outputs = [_without_node(output) for output in outputs]
            made = call
        elif isinstance(node, OutputNode) and parents[0] is not None:
            made = OutputNode(parents[0], node.index)
        else:  # the leaf of an inner tape, or an output of a call before all leaves
            made = Leaf(parents)
        made.order = node.order
        return made

    def _enter(self, saved: Any) -> Any:
        if isinstance(saved, list):
            return [self._enter(member) for member in saved]
        if saved is None:
            return None
        value, tensor = self._trace.enter(saved[1].type)
        self.values.append(value)
        return tensor._buffer, tensor._placement, None


def _without_node(saved: Any) -> Any:
    return [_without_node(x) for x in saved] if isinstance(saved, list) else saved[:2]


def _describe(starts: Sequence[tuple[Node, Tensor]], leaves: Sequence[Node]) -> _Tape | None:
    """Return what a tape looks like; None if it cannot occur again.

    That is because of the call of a Python function, or of a plan that serves one call.
    """
    nodes = _find_nodes(starts, leaves)
    number: dict[Node | None, int] = {}
    for node in nodes:
        number[node] = len(number)
    targets = set(leaves)
    parts: list[Hashable] = []
    saved: list[Any] = []  # not flat yet
    find = number.get
    for node in nodes:
        if node in targets:
            parts.append(None)
        elif isinstance(node, CallNode):
            if node.plan.variant or not node.plan.static_shapes:
                return None  # its plan is another one for each call
            parts.append((node.recipe, *[find(parent) for parent in node.parents]))
            saved += node.saved_inputs
            saved += node.saved_outputs
        elif isinstance(node, OutputNode):
            parts.append((node.index, find(node.parents[0])))
        elif isinstance(node, Leaf):
            parts.append(find(node.parents[0]))
        else:
            return None
    plain = all(item.__class__ is tuple for item in saved)
    ends = tuple([find(leaf) for leaf in leaves])
    begins = tuple([(find(node), dy._placement) for node, dy in starts])
    return _Tape((begins, ends, *parts), nodes, saved if plain else flatten(saved))


def _find_nodes(starts: Sequence[tuple[Node, Tensor]], leaves: Sequence[Node]) -> list[Node]:
    """Return the starts and their ancestors up to the leaves, in an order of their structure."""
    oldest = min([leaf.order for leaf in leaves])
    targets = set(leaves)  # their parents belong to an outer tape
    found: dict[Node, None] = {}
    stack = [node for node, _ in starts]
    while stack:
        node = stack.pop()
        if node in found:
            continue
        found[node] = None
        if node not in targets:
            stack += [x for x in node.parents if x is not None and x.order >= oldest]
    return list(found)


def _run(
    known: _BackwardProgram,
    starts: Sequence[tuple[Node, Tensor]],
    leaves: Sequence[Node],
    saved: Sequence[Saved],
) -> dict[Node, Tensor]:
    buffers: list[Buffer] = [dy._buffer for _, dy in starts]
    buffers += [item[0] for item in saved]
    outputs = known.executable.run(buffers)
    return {
        leaves[at]: Tensor._of(buffer, placement)
        for at, buffer, placement in zip(known.reached, outputs, known.placements, strict=True)
    }
