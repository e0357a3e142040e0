"""Runs a graph: node by node, each value dropped after its last use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug_onnx.errors import NodeError, OnnxError, UnsupportedError, ValueNeededError
from tensorplug_onnx.functions import has_body
from tensorplug_onnx.loading import graphs_in
from tensorplug_onnx.planning import Plans
from tensorplug_onnx.rules import lookup
from tensorplug_onnx.values import as_host, as_tensor, described, namespace
from tensorplug_onnx.widening import narrowed, widened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug_onnx.graph import Graph, Node
    from tensorplug_onnx.planning import Step
    from tensorplug_onnx.values import Value

__all__ = ["Plans", "Scope", "check_supported", "outputs_of", "run_graph"]

_NOTHING: Final[Mapping[int, str]] = {}


@dataclass(frozen=True, slots=True)
class Scope:
    """The values that a graph can use, and what runs the graphs inside of it.

    ``parameters``: those of the model, as no transformation has seen them.
    """

    values: dict[str, Value]
    plans: Plans
    graph: Graph | None = None
    parameters: Mapping[str, Value] = field(default_factory=dict)

    def keeping(self, *graphs: Graph) -> Scope:
        """Return a scope of what these graphs take from around them.

        Values are dropped after their last use, and a backward pass runs the graphs later.
        """
        names = frozenset().union(*(graph.free for graph in graphs))
        values = {name: self.values[name] for name in names}
        return Scope(values, self.plans, parameters=self.parameters)

    def prepared(self, node: Node, weights: Mapping[int, Value], make: Callable[[], Any]) -> Any:
        """Return what a rule makes of weights, made once if they are parameters of the model.

        Where a transformation (``tp.grad``, ``tp.vmap``, ``tp.compile``) replaced them, what is
        made belongs to it, and is not kept.

        Args:
            node: the call.
            weights: some of its inputs by their positions; None for an absent one.
            make: makes it.

        """
        own = self.parameters
        for at, weight in weights.items():
            if weight is not None and own.get(node.inputs[at]) is not weight:
                return make()
        return self.plans.prepared(node, list(weights.values()), make)

    def run(self, graph: Graph, inputs: Sequence[Value]) -> list[Value]:
        """Run a graph inside of this one.

        Args:
            graph: an attribute of a node.
            inputs: one for each of its inputs, in their order.

        Returns:
            Its outputs, in their order.

        """
        values = {name: self.values[name] for name in graph.free}
        values |= zip((info.name for info in graph.inputs), inputs, strict=True)
        return run_graph(graph, values, self.plans, self.parameters)


def run_graph(
    graph: Graph,
    values: Mapping[str, Value],
    plans: Plans,
    parameters: Mapping[str, Value] | None = None,
) -> list[Value]:
    """Return the outputs of a graph.

    Args:
        graph: what to run.
        values: by name: the inputs, what the graph takes from graphs around it, and values for
            some of the initializers.
        plans: kept from call to call.
        parameters: those of the model, for ``Scope.prepared``.

    Raises:
        NodeError: a node failed.
        UnsupportedError: there is no rule for one.
        ValueNeededError: while it is compiled, a node needs the value of a tensor.

    """
    known: dict[str, Value] = {**graph.initializers, **values, "": None}
    scope = Scope(known, plans, graph, parameters or {})
    watch = plans.watch
    with np.errstate(all="ignore"):  # what NumPy computes on the host warns as little as a device
        for step in plans.of(graph):
            if watch is None:
                _run_step(step, scope)
            else:
                with watch(step.node):
                    _run_step(step, scope)
    return [known[info.name] for info in graph.outputs]


def outputs_of(
    graph: Graph, values: Mapping[str, Value], plans: Plans, parameters: Mapping[str, Value]
) -> dict[str, Any]:
    """Return the outputs of a model by name, on the device where it has their dtype."""
    found = run_graph(graph, values, plans, parameters)
    names = (info.name for info in graph.outputs)
    return {name: as_tensor(value) for name, value in zip(names, found, strict=True)}


def _run_step(step: Step, scope: Scope) -> None:
    node, values = step.node, scope.values
    inputs = [values[name] for name in node.inputs]
    try:
        if step.known is not None:
            outputs: Sequence[Value] = step.known
        elif step.rule is None:
            outputs = _by_body(node, inputs, scope)
        else:
            outputs = _by_rule(step, inputs, scope)
    except Exception as error:  # a backend may raise anything; the cause is attached
        told = _told(error, node, inputs)
        if told is error:
            raise
        raise told from error
    names = node.outputs
    if len(names) > len(outputs) and any(names[len(outputs) :]):
        raise NodeError(f"{node} has {len(names)} outputs, {len(outputs)} are computed", node=node)
    for name, value in zip(names, outputs):  # noqa: B905  # the keyword takes a while
        if name:
            values[name] = value
    for name in step.dropped:
        values.pop(name, None)


def _told(error: Exception, node: Node, inputs: Sequence[Value]) -> Exception:
    """Return the error that names the node; the same if it names one already."""
    if isinstance(error, OnnxError):
        # Of a graph inside of the node: the innermost node is named.
        return error if error.node is not None else type(error)(f"{node}: {error}", node=node)
    if isinstance(error, tp.errors.DataNeededError):
        return ValueNeededError(
            f"{node}: a compiled model must not depend on the values of its inputs here: {error}",
            node=node,
        )
    given = ", ".join(map(described, inputs))
    return NodeError(f"{node} with {given}: {str(error) or type(error).__name__}", node=node)


def _by_rule(step: Step, inputs: list[Any], scope: Scope) -> Sequence[Value]:
    rule = step.rule
    assert rule is not None
    for at in step.on_host:
        inputs[at] = as_host(inputs[at])
    narrow: Mapping[int, str] = _NOTHING
    if rule.raw or _are_tensors(inputs, step.others):
        keywords = step.of_tensors
    else:
        keywords, narrow = _placed(step, inputs, scope)
    if "scope" in rule.asks:
        keywords = {**keywords, "scope": scope}
    found = rule.function(*inputs, **keywords)
    if type(found) is tp.Tensor and not narrow:
        return (found,)
    outputs: Sequence[Any] = found if isinstance(found, tuple) else (found,)
    if narrow:
        outputs = narrowed(outputs, step.node, narrow)
    return [_whole(one) for one in outputs]


def _are_tensors(inputs: Sequence[Any], positions: Sequence[int]) -> bool:
    """Return whether there are tensors at these positions, and nothing else."""
    found = False
    for at in positions:
        value = inputs[at]
        if type(value) is tp.Tensor:
            found = True
        elif value is not None:
            return False
    return found


def _placed(
    step: Step, inputs: list[Any], scope: Scope
) -> tuple[Mapping[str, Any], Mapping[int, str]]:
    """Put all inputs where the rule computes: on the host, or on the device.

    Returns:
        The keywords of the rule, and the dtypes of inputs that were widened, by position.

    """
    others = [inputs[at] for at in step.others]
    host = "xp" in step.of_arrays and namespace(*others) is np
    narrow = widened(inputs, step.others, step.node, host=host)
    if host:
        return step.of_arrays, narrow
    for at in step.others:
        value = inputs[at]
        if isinstance(value, np.ndarray) and step.constants.get(at) is value:
            inputs[at] = scope.plans.on_device(value)
        else:
            inputs[at] = as_tensor(value)
    return step.of_tensors, narrow


def _whole(value: Any) -> Any:
    """Return an array of rank 0 where NumPy's functions return a number or a text."""
    if isinstance(value, str):
        return np.asarray(value, np.dtypes.StringDType())
    return np.asarray(value) if isinstance(value, np.generic) else value


def _by_body(node: Node, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    graph = scope.plans.body(node, inputs)
    if graph is None:
        raise UnsupportedError("there is no rule for this operator")
    given = [*inputs, *([None] * (len(graph.inputs) - len(inputs)))]
    values = dict(zip((info.name for info in graph.inputs), given, strict=True))
    return run_graph(graph, values, scope.plans)


def check_supported(graph: Graph) -> None:
    """Raise an error that names all operators of a graph without a rule or a body.

    Raises:
        UnsupportedError: there are some.

    """
    lacking = sorted(set(_lacking(graph)))
    if lacking:
        raise UnsupportedError("there is no rule for " + ", ".join(lacking))


def _lacking(graph: Graph) -> list[str]:
    found = []
    for node in graph.nodes:
        if lookup(node.op_type, node.domain, node.version) is None and not has_body(node):
            found.append(f"{node.op_type} ({node.domain or 'ai.onnx'} {node.version})")
        for inner in graphs_in(node.attributes):
            found += _lacking(inner)
    return found
