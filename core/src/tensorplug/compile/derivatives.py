"""Gradients through a compiled function: two programs made of one trace.

One trace records the function with the tape on, and then the backward pass. The calls before the
backward pass are the forward program, the others the backward program. The forward program also
returns the values that the backward program uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.autodiff.backpropagation import FunctionNode, backpropagate
from tensorplug.autodiff.recording import Recording
from tensorplug.autodiff.tape import Leaf, Node, OutputNode
from tensorplug.compile.arguments.floats import Floats, find, remember
from tensorplug.compile.fusion.epilogues import add_epilogues
from tensorplug.compile.programs.executable import Executable
from tensorplug.compile.programs.program import Program
from tensorplug.compile.specialized import run, upload
from tensorplug.compile.tracing.bodies import trace_body
from tensorplug.compile.tracing.calls import Call
from tensorplug.compile.tracing.nested import CORE, NestedPlan
from tensorplug.compile.tracing.passes import (
    eliminate_common_calls,
    eliminate_dead_calls,
    select_used,
)
from tensorplug.compile.tracing.trace import Trace
from tensorplug.contract.dtypes import INEXACT
from tensorplug.contract.spec import Attribute, KernelSpec
from tensorplug.dispatch.calls import to_device
from tensorplug.dispatch.context import current_context, is_taped, use_context
from tensorplug.dispatch.tensor import Tensor
from tensorplug.engine.plans import Plan
from tensorplug.errors import BackendClosedError, GradientError
from tensorplug.ops import creation
from tensorplug.tensors.variable import alias

if TYPE_CHECKING:
    from collections.abc import Container, Hashable, Mapping, Sequence

    from tensorplug.autodiff.recording import Watched
    from tensorplug.compile.specialized import Specialized
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.device import Placement


_LIMIT: Final = 64  # derivatives of one program, which differ in floats that gradients read


class Derivative(NamedTuple):
    """The forward and the backward program for a set of inputs that need gradients.

    ``forward`` returns the function's results, then the saved values. ``backward`` takes the saved
    values, then the cotangents of the results at ``starts``; it returns the gradients of the
    inputs at ``reached``. ``floats``: the Python floats among the inputs of ``forward``.
    ``saved``: the placements of the saved values.
    """

    forward: Executable
    backward: Executable
    starts: list[int]
    reached: list[int]
    floats: Floats
    saved: list[Placement]


def _infer_gradients(_operands: list[TensorType], *, types: Sequence[TensorType]) -> Any:
    return tuple(types)


_BACKWARD: Final = KernelSpec(
    "Backward",
    ("operands[]",),  # the saved values, then the cotangents
    _infer_gradients,
    attributes=dict.fromkeys(("types", "of"), Attribute(lambda value, _: value)),
    outputs=("gradients[]",),
)
"""The backward program of a compiled function, as a call of a program around it."""


def run_recorded(
    special: Specialized, context: Context, tensors: Sequence[Tensor], floats: Sequence[float]
) -> Any:
    """Run the forward program and record one node for it."""
    on_tape = tuple(at for at, tensor in enumerate(tensors) if tensor._node is not None)
    derivative = find(special.derivatives, on_tape, floats)
    if derivative is None:
        traced = Floats(floats, static=special.floats.static)
        derivative = _derivative(special, on_tape, traced)
        remember(special.derivatives, on_tape, floats, derivative, _LIMIT)
    inputs = [tensor._buffer for tensor in tensors]
    if derivative.floats.inputs:
        inputs += upload(special.device, derivative.floats, derivative.floats.evaluate(floats))
    buffers = run(derivative.forward, context, inputs)
    count = len(special.placements)
    results, kept = buffers[:count], buffers[count:]
    saved = [Tensor._of(*pair) for pair in zip(kept, derivative.saved, strict=True)]
    node = _ProgramNode(special, derivative, on_tape, tensors, floats, saved)
    nodes: list[Node | None] = [None] * count
    for index, at in enumerate(derivative.starts):
        nodes[at] = node if node.count == 1 else OutputNode(node, index)
    return special.leave(context, results, special.floats.evaluate(floats), nodes)


def _derivative(special: Specialized, on_tape: Sequence[int], floats: Floats) -> Derivative:
    body = special.body
    trace = Trace(special.engine, special.device, floats)
    leaves = {at: Leaf((None,)) for at in on_tape}
    entries = [
        trace.enter(body.leaves[number], leaves.get(at)) for at, number in enumerate(body.places)
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
        result, _ = trace_body(
            trace,
            body,
            [tensor for _, tensor in entries],
            Recording(None, watched),
            special.autocast,
        )
        assigned = [trace.assigned[id(assign)][1] for assign in special.assigns]
        results = [trace.operand(tensor) for tensor in (*result.tensors, *assigned)]
        boundary = len(trace.calls)
        starts = [at for at, tensor in enumerate(result.tensors) if _needs_cotangent(tensor)]
        dys = [trace.enter(result.tensors[at].type) for at in starts]
        with use_context(trace.context()):
            cotangents = backpropagate(
                [(result.tensors[at]._node, dy) for at, (_, dy) in zip(starts, dys, strict=True)],
                list(leaves.values()),
            )
        reached = [at for at in on_tape if leaves[at] in cotangents]
        gradients = [trace.operand(cotangents[leaves[at]]) for at in reached]
    finally:
        recorded = trace.finish()
    inputs = [value for value, _ in entries] + [read.value for read in recorded.reads]
    inputs += recorded.numbers
    forward, backward = recorded.calls[:boundary], recorded.calls[boundary:]
    later = {value for call in backward for value in call.outputs}
    calls, both = eliminate_common_calls(recorded.calls, [*results, *gradients])
    results, gradients = both[: len(results)], both[len(results) :]
    live = add_epilogues(special.engine, eliminate_dead_calls(calls, both), both)
    forward = [call for call in live if later.isdisjoint(call.outputs)]
    backward = [call for call in live if not later.isdisjoint(call.outputs)]
    before = [*inputs, *(value for call in forward for value in call.outputs)]
    kept = select_used(before, backward, gradients)
    engine, device = special.engine, special.device
    return Derivative(
        Executable(engine, Program(device, inputs, forward, [*results, *kept]), small=True),
        Executable(
            engine,
            Program(device, [*kept, *(value for value, _ in dys)], backward, gradients),
            small=True,
        ),
        starts,
        reached,
        floats,
        [special.place(value.placement) for value in kept],
    )


def _needs_cotangent(result: Tensor) -> bool:
    return result._node is not None and result.dtype in INEXACT


class _ProgramNode(FunctionNode):
    """A run of a compiled function; its parents are the inputs that need gradients."""

    __slots__ = ("derivative", "floats", "kept", "special", "tensors", "wanted")

    def __init__(
        self,
        special: Specialized,
        derivative: Derivative,
        wanted: Sequence[int],
        tensors: Sequence[Tensor],
        floats: Sequence[float],
        kept: Sequence[Tensor],
    ) -> None:
        super().__init__(tuple(tensors[at]._node for at in wanted))
        self.special = special
        self.derivative = derivative
        self.wanted = wanted
        self.tensors = [alias(tensor) for tensor in tensors]  # which the user cannot dispose of
        self.floats = floats
        self.kept = kept  # as tensors, which memory() counts and remove_backend finds

    @property
    def count(self) -> int:
        """The number of results with a cotangent."""
        return len(self.derivative.starts)

    @property
    def repeats(self) -> Hashable:
        """The backward program."""
        return self.derivative.backward

    def values(self) -> list[tuple[Any, Placement]]:
        """Return the saved buffers with their placements."""
        return [(tensor._buffer, tensor._placement) for tensor in self.kept]

    def stand_in(self, parents: tuple[Node | None, ...], saved: Sequence[Tensor]) -> FunctionNode:
        """Return a node that records a call of the backward program."""
        return _TracedNode(parents, self, saved)

    def vjp(self, cotangent: Any, path: Container[Node]) -> list[tuple[Node, Tensor]]:
        """Run the backward program, or differentiate the function if a tape records that."""
        context = current_context()
        dys = self.complete(cotangent)
        device = self.special.engine.devices.of(context)
        if self._is_interpreted(context):
            gradients = self._interpret_backward(dys)
        elif context.recording is not None or not device.is_real:
            gradients = self._differentiate_function(context, dys)
        else:
            gradients = self._run_backward(context, dys)
        return self.choose(self.parents, gradients, path)

    def choose(
        self,
        parents: Sequence[Node | None],
        gradients: Mapping[int, Tensor],
        path: Container[Node],
    ) -> list[tuple[Node, Tensor]]:
        """Return the gradients of the inputs with ``parents``, for those on ``path``."""
        known = dict(zip(self.wanted, parents, strict=True))
        return [
            (parent, gradient)
            for at, gradient in gradients.items()
            if (parent := known[at]) is not None and parent in path
        ]

    def complete(self, cotangent: Any) -> list[Tensor]:
        """Return the cotangents of all results, with zeros for missing ones."""
        dys = cotangent if isinstance(cotangent, list) else [cotangent]
        results = self.special.executable.program.wanted
        result = []
        for at, dy in zip(self.derivative.starts, dys, strict=True):
            type_ = results[at].placement.type
            result.append(creation.zeros(type_.shape, dtype=type_.dtype) if dy is None else dy)
        return result

    def _is_interpreted(self, context: Context) -> bool:
        """Return whether to interpret the calls of the backward program, on constants and dys.

        That is not so where a tape outside of interpreters may need derivatives of the constants.
        """
        if context.outside is None or is_taped(context):
            return False
        outermost = context.outside
        while outermost.outside is not None:
            outermost = outermost.outside
        calls = self.derivative.backward.program.calls
        nested = any(isinstance(call.plan, NestedPlan) for call in calls)
        return (outermost.device is None or outermost.device.is_real) and not nested

    def _interpret_backward(self, dys: Sequence[Tensor]) -> dict[int, Tensor]:
        gradients = self.derivative.backward.program.by_ops([*self.kept, *dys])
        return dict(zip(self.derivative.reached, gradients, strict=True))

    def _run_backward(self, context: Context, dys: Sequence[Tensor]) -> dict[int, Tensor]:
        device, backward = self.special.device, self.derivative.backward
        if device.closed:
            raise BackendClosedError(
                f"a compiled function ran on backend {device.name!r}, which {device.fate}; its "
                "backward pass cannot run"
            )
        dys = [dy if dy._placement.device is device else to_device(dy, device.name) for dy in dys]
        buffers = run(backward, context, [tensor._buffer for tensor in (*self.kept, *dys)])
        return {
            at: Tensor._of(buffer, self.special.place(operand.placement))
            for at, buffer, operand in zip(
                self.derivative.reached, buffers, backward.program.wanted, strict=True
            )
        }

    def _differentiate_function(
        self, context: Context, dys: Sequence[Tensor]
    ) -> dict[int, Tensor]:
        """Record a call of the function itself, so that its gradients are on the tape, too."""
        special = self.special
        if special.assigns or any(not hasattr(read.source, "_reading") for read in special.reads):
            raise GradientError(
                "compile: a second derivative of a compiled function calls the function again, "
                "which must therefore not assign to variables or draw from a generator. Compile "
                "the function that computes both derivatives instead"
            )
        outer = is_taped(context)
        leaves = {at: Leaf((self.tensors[at]._node if outer else None,)) for at in self.wanted}
        inputs = [
            Tensor._of(tensor._buffer, tensor._placement, leaves.get(at))
            for at, tensor in enumerate(self.tensors)
        ]
        first = len(special.body.places)
        watched = {
            id(read.source): (read.source, tensor)
            for read, tensor in zip(special.reads, inputs[first:], strict=True)
        }
        recording = Recording(context.recording, watched)
        with use_context(context.replace(recording=recording, autocast=special.autocast)):
            result = special.call_function(inputs[:first], self.floats)
        starts = [
            (result[at]._node, dy) for at, dy in zip(self.derivative.starts, dys, strict=True)
        ]
        cotangents = backpropagate(starts, list(leaves.values()))
        return {at: cotangents[leaf] for at, leaf in leaves.items() if leaf in cotangents}


class _TracedNode(FunctionNode):
    """A run of a compiled function on a tape of which a program is made."""

    __slots__ = ("kept", "node")

    def __init__(
        self, parents: tuple[Node | None, ...], node: _ProgramNode, kept: Sequence[Tensor]
    ) -> None:
        super().__init__(parents)
        self.node = node
        self.kept = kept

    @property
    def count(self) -> int:
        """The number of results with a cotangent."""
        return self.node.count

    def vjp(self, cotangent: Any, path: Container[Node]) -> list[tuple[Node, Tensor]]:
        """Record a call of the backward program, which gives the same results alone as there."""
        derivative = self.node.derivative
        trace: Trace = current_context().device.interpreter  # type: ignore[union-attr]  # in a trace
        operands = [trace.operand(x) for x in (*self.kept, *self.node.complete(cotangent))]
        types = [value.placement.type for value in derivative.backward.program.wanted]
        plan = Plan(
            _BACKWARD,
            {"types": types, "of": derivative.backward},
            trace.real,
            [[operand.placement.type for operand in operands]],
            types,
            self.node.special.state,
        )
        plan.call, plan.how, plan.owner = derivative.backward.run, "programs", CORE
        plan.takes_buffers = plan.published = True
        outputs = trace.add(Call(plan, [operands], []))
        gradients = dict(zip(derivative.reached, outputs, strict=True))
        return self.node.choose(self.parents, gradients, path)
