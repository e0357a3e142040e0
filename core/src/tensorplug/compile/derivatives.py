"""Gradients through a compiled function: two programs made of one trace.

The function is traced with the tape on, and the backward pass in the same trace. What was noted
before the backward pass began is the forward program, the rest the other; of the former's values
those are kept that the latter uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.autodiff.backpropagation import FunctionNode, backpropagate
from tensorplug.autodiff.recording import Recording
from tensorplug.autodiff.tape import Leaf, Node, OutputNode
from tensorplug.compile.passes import crossing, without_common, without_dead
from tensorplug.compile.programs import Program
from tensorplug.compile.running import Executable
from tensorplug.compile.specialized import run, traced
from tensorplug.compile.tracing import Trace
from tensorplug.contract.dtypes import INEXACT
from tensorplug.dispatch.calls import to_device
from tensorplug.dispatch.context import current_context, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import BackendClosedError, GradientError
from tensorplug.ops import creation
from tensorplug.tensors.variable import alias

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from tensorplug.autodiff.recording import Watched
    from tensorplug.compile.specialized import Specialized
    from tensorplug.dispatch.context import Context

__all__ = ["differentiated"]


class Derivative(NamedTuple):
    """Programs for some inputs that need gradients.

    ``forward`` returns what the function's program does, then what ``backward`` takes first; after
    these come the gradients that arrive at the results at ``starts``. ``backward`` gives those of
    the inputs at ``reached``.
    """

    forward: Executable
    backward: Executable
    starts: list[int]
    reached: list[int]


def differentiated(special: Specialized, context: Context, tensors: Sequence[Tensor]) -> Any:
    """Run a program and leave one node on the tape for it."""
    wanted = tuple(at for at, tensor in enumerate(tensors) if tensor._node is not None)
    derivative = special.derivatives.get(wanted)
    if derivative is None:
        derivative = special.derivatives[wanted] = _derivative(special, wanted)
    buffers = run(derivative.forward, context, [tensor._buffer for tensor in tensors])
    count = len(special.executable.program.wanted)
    results, kept = buffers[:count], buffers[count:]
    places = derivative.forward.program.wanted[count:]
    saved = [Tensor._of(item, at.placement) for item, at in zip(kept, places, strict=True)]
    node = _ProgramNode(special, derivative, wanted, tensors, saved)
    nodes: list[Node | None] = [None] * count
    for index, at in enumerate(derivative.starts):
        nodes[at] = node if node.count == 1 else OutputNode(node, index)
    return special.leave(context, results, nodes)


def _derivative(special: Specialized, wanted: Sequence[int]) -> Derivative:
    body = special.body
    trace = Trace(special.engine, special.device)
    leaves = {at: Leaf((None,)) for at in wanted}
    entries = [
        trace.enter(body.leaves[place], leaves.get(at)) for at, place in enumerate(body.places)
    ]
    trace.expect(special.reads)
    first = len(entries)
    watched: dict[int, Watched] = {}
    for at, read in enumerate(trace.reads, first):
        if at in leaves:
            placement = trace.device.placement(read.value.placement.type)
            held = Tensor._of(read.value, placement, leaves[at])
            watched[id(read.source)] = (read.source, held)
    try:
        result, _ = traced(
            trace, body, [tensor for _, tensor in entries], Recording(None, watched)
        )
        assigned = [trace.assigned[id(assign)][1] for assign in special.assigns]
        results = [trace.operand(item) for item in (*result.tensors, *assigned)]
        boundary = len(trace.calls)
        starts = [at for at, item in enumerate(result.tensors) if _flows(item)]
        dys = [trace.enter(result.tensors[at].type) for at in starts]
        with use_context(trace.context()):
            found = backpropagate(
                [(result.tensors[at]._node, dy) for at, (_, dy) in zip(starts, dys, strict=True)],
                list(leaves.values()),
            )
        reached = [at for at in wanted if leaves[at] in found]
        gradients = [trace.operand(found[leaves[at]]) for at in reached]
    finally:
        trace.over = True
    inputs = [value for value, _ in entries] + [read.value for read in trace.reads]
    forward, backward = trace.calls[:boundary], trace.calls[boundary:]
    later = {value for call in backward for value in call.outputs}
    calls, both = without_common(trace.calls, [*results, *gradients])
    results, gradients = both[: len(results)], both[len(results) :]
    live = without_dead(calls, both)
    forward = [item for item in live if later.isdisjoint(item.outputs)]
    backward = [item for item in live if not later.isdisjoint(item.outputs)]
    before = [*inputs, *(value for call in forward for value in call.outputs)]
    kept = crossing(before, backward, gradients)
    device = special.device
    return Derivative(
        Executable(Program(device, inputs, forward, [*results, *kept])),
        Executable(Program(device, [*kept, *(value for value, _ in dys)], backward, gradients)),
        starts,
        reached,
    )


def _flows(result: Tensor) -> bool:
    return result._node is not None and result.dtype in INEXACT


class _ProgramNode(FunctionNode):
    """A run of a compiled function; its parents are the inputs that need gradients."""

    __slots__ = ("derivative", "kept", "special", "tensors", "wanted")

    def __init__(
        self,
        special: Specialized,
        derivative: Derivative,
        wanted: Sequence[int],
        tensors: Sequence[Tensor],
        kept: Sequence[Tensor],
    ) -> None:
        super().__init__(tuple(tensors[at]._node for at in wanted))
        self.special = special
        self.derivative = derivative
        self.wanted = wanted
        self.tensors = [alias(tensor) for tensor in tensors]  # whatever their owners do to theirs
        self.kept = kept  # as tensors, which memory() counts and remove_backend finds

    @property
    def count(self) -> int:
        """How many results gradients arrive at."""
        return len(self.derivative.starts)

    def vjp(self, arrived: Any, path: Container[Node]) -> list[tuple[Node, Tensor]]:
        """Run the backward program; where that is to be differentiated too, the function."""
        context = current_context()
        given = self._complete(arrived)
        device = self.special.engine.devices.of(context)
        if context.recording is not None or device.trace is not None:
            pulled = self._pull_again(context, given)
        else:
            pulled = self._pull(context, given)
        parents = dict(zip(self.wanted, self.parents, strict=True))
        return [
            (parent, gradient)
            for at, gradient in pulled.items()
            if (parent := parents[at]) is not None and parent in path
        ]

    def _complete(self, arrived: Any) -> list[Tensor]:
        """Return what arrives at each result, zeros where nothing does."""
        dys = arrived if isinstance(arrived, list) else [arrived]
        wanted = self.special.executable.program.wanted
        result = []
        for at, dy in zip(self.derivative.starts, dys, strict=True):
            type_ = wanted[at].placement.type
            result.append(creation.zeros(type_.shape, dtype=type_.dtype) if dy is None else dy)
        return result

    def _pull(self, context: Context, dys: Sequence[Tensor]) -> dict[int, Tensor]:
        device, backward = self.special.device, self.derivative.backward
        if device.closed:
            raise BackendClosedError(
                f"a compiled function ran on backend {device.name!r}, which {device.fate}; its "
                "backward pass cannot run"
            )
        there = [
            dy if dy._placement.device is device else to_device(dy, device.name) for dy in dys
        ]
        buffers = run(backward, context, [item._buffer for item in (*self.kept, *there)])
        return {
            at: Tensor._of(buffer, operand.placement)
            for at, buffer, operand in zip(
                self.derivative.reached, buffers, backward.program.wanted, strict=True
            )
        }

    def _pull_again(self, context: Context, dys: Sequence[Tensor]) -> dict[int, Tensor]:
        """Call the function itself with the tape on, so that what is pulled back is on it too."""
        special = self.special
        if special.assigns or any(not hasattr(item.source, "_reading") for item in special.reads):
            raise GradientError(
                "compile: a gradient through a compiled function is differentiated again, for "
                "which the function would run a second time; but it assigns to variables or draws "
                "from a generator. Compile the function that takes both derivatives instead"
            )
        outer = context.recording is not None
        leaves = {at: Leaf((self.tensors[at]._node if outer else None,)) for at in self.wanted}
        given = [
            Tensor._of(item._buffer, item._placement, leaves.get(at))
            for at, item in enumerate(self.tensors)
        ]
        first = len(special.body.places)
        watched = {
            id(read.source): (read.source, tensor)
            for read, tensor in zip(special.reads, given[first:], strict=True)
        }
        own = context.replace(recording=Recording(context.recording, watched))
        with use_context(own):
            result = special.returned(given[:first])
        starts = [
            (result[at]._node, dy) for at, dy in zip(self.derivative.starts, dys, strict=True)
        ]
        found = backpropagate(starts, list(leaves.values()))
        return {at: found[leaf] for at, leaf in leaves.items() if leaf in found}
