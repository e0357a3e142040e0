"""Recording loops and branches in the trace of a compiled function.

All functions here take and return lists of tensors. They also return the nodes of the tensors on
the tape that the functions given to them capture, with the types of these tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.compile.control.branches import SWITCH, SwitchPlan
from tensorplug.compile.control.hoisting import hoist
from tensorplug.compile.control.repeated import SCAN, WHILE, ScanPlan, WhilePlan
from tensorplug.compile.control.sinking import sink
from tensorplug.compile.control.sub_traces import trace_function
from tensorplug.compile.tracing.calls import Call
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch.context import current_context

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.autodiff.tape import Node
    from tensorplug.compile.control.sub_traces import TracedFunction
    from tensorplug.compile.tracing.nested import NestedPlan
    from tensorplug.compile.tracing.trace import Trace
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.tensor import Tensor

    Flat = Callable[[list[Tensor]], list[Tensor]]
    Found = tuple[list[Tensor], Mapping[Node, TensorType]]


class Steps(NamedTuple):
    """The steps of a loop: ``f`` takes carries and slices, and gives carries and results.

    ``who``: the public function, for messages.
    """

    f: Flat
    length: int
    reverse: bool
    who: str


def slice_types(xs: Sequence[Tensor]) -> list[TensorType]:
    """Return the types of the slices of sequences along the first axis."""
    return [TensorType(x.dtype, x.shape[1:]) for x in xs]


def trace_scan(trace: Trace, steps: Steps, init: Sequence[Tensor], xs: Sequence[Tensor]) -> Found:
    """Record a loop of ``steps.length`` steps, at least one, over slices of ``xs``."""
    types = [*[tensor.type for tensor in init], *slice_types(xs)]
    traced = _trace(trace, steps.f, types, steps.who)
    hoisted, more = hoist(trace, traced.program, len(init), xs, traced.captured)
    sequences = [*xs, *more]
    sunk = sink(trace, hoisted, len(init), sequences)
    attributes = {
        "body": sunk.program,
        "carries": len(sunk.kept),
        "sequences": len(sequences),
        "length": steps.length,
        "reverse": steps.reverse,
    }
    carries = [init[at] for at in sunk.kept]
    outputs, nodes = _add(trace, ScanPlan, SCAN, attributes, [*carries, *sequences], [traced])
    return sunk.finish(trace, init, outputs), nodes


def trace_switch(
    trace: Trace, index: Tensor, branches: Sequence[Flat], operands: Sequence[Tensor], who: str
) -> Found:
    """Record a choice of one of the branches, whose results have the same types."""
    types = [tensor.type for tensor in operands]
    traced = [_trace(trace, branch, types, who, hoists=False) for branch in branches]
    places = _places(traced, 1 + len(operands))
    attributes = {
        "branches": tuple(each.program for each in traced),
        "takes": tuple(
            (*range(1, 1 + len(operands)), *[places[value] for value in each.captured])
            for each in traced
        ),
    }
    return _add(trace, SwitchPlan, SWITCH, attributes, [index, *operands], traced)


def trace_while(
    trace: Trace,
    condition: Flat,
    body: Flat,
    init: Sequence[Tensor],
    most: int | None,
    who: str,
) -> Found:
    """Record a loop of steps while the condition holds, of at most ``most`` steps."""
    types = [tensor.type for tensor in init]
    traced = [_trace(trace, f, types, who) for f in (condition, body)]
    places = _places(traced, len(init))
    asks, takes = [
        (*range(len(init)), *[places[value] for value in each.captured]) for each in traced
    ]
    attributes = {
        "condition": traced[0].program,
        "body": traced[1].program,
        "asks": asks,
        "takes": takes,
        "most": most,
    }
    return _add(trace, WhilePlan, WHILE, attributes, init, traced)


def _trace(
    trace: Trace, f: Flat, types: Sequence[TensorType], who: str, *, hoists: bool = True
) -> TracedFunction:
    recording = current_context().recording
    return trace_function(trace, f, types, who=who, recording=recording, hoists=hoists)


def _places(traced: Sequence[TracedFunction], first: int) -> dict[Any, int]:
    """Return the positions of captured values among the operands, from ``first`` on."""
    shared = dict.fromkeys(value for each in traced for value in each.captured)
    return {value: at for at, value in enumerate(shared, first)}


def _add(
    trace: Trace,
    kind: type[NestedPlan],
    spec: KernelSpec,
    attributes: Mapping[str, Any],
    tensors: Sequence[Tensor],
    traced: Sequence[TracedFunction],
) -> Found:
    """Record a call with the operands ``tensors`` and what the functions captured."""
    operands = [*[trace.operand(tensor) for tensor in tensors], *_places(traced, 0)]
    types = [operand.placement.type for operand in operands]
    plan = kind(spec, attributes, trace.real, types, trace.engine.registry.state)
    nodes = {node: type_ for each in traced for node, type_ in each.nodes.items()}
    return trace.add(Call(plan, [operands], [])), nodes
