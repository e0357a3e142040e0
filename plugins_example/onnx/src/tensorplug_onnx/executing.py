"""Runs a graph: node by node, each value dropped after its last use."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp
from tensorplug_onnx.errors import NodeError, OnnxError, UnsupportedError, ValueNeededError
from tensorplug_onnx.functions import body_of, depends_on_types, has_body
from tensorplug_onnx.loading import graphs_in
from tensorplug_onnx.rules import lookup
from tensorplug_onnx.values import as_host, as_tensor, dtype_of, namespace
from tensorplug_onnx.widening import narrowed, widened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from tensorplug_onnx.graph import Graph, Node
    from tensorplug_onnx.rules import Rule
    from tensorplug_onnx.values import Value

__all__ = ["Plans", "Scope", "check_supported", "run_graph"]


@dataclass(frozen=True, slots=True)
class _Step:
    node: Node
    rule: Rule | None
    dropped: tuple[str, ...]


def _steps(graph: Graph) -> tuple[_Step, ...]:
    """Return the steps of a graph, with the names that nothing needs after each."""
    needed = {info.name for info in graph.outputs} | graph.initializers.keys()
    steps: list[_Step] = []
    for node in reversed(graph.nodes):
        used = {name for name in node.inputs if name}
        for inner in graphs_in(node.attributes):
            used |= inner.free
        names = used | set(node.outputs)
        dropped = tuple(sorted(name for name in names - needed if name))
        needed |= used
        steps.append(_Step(node, lookup(node.op_type, node.domain, node.version), dropped))
    return tuple(reversed(steps))


class Plans:
    """The steps of graphs, worked out once for each.

    ``watch``: where given, each node runs in the context that it returns for the node.
    """

    def __init__(self, watch: Callable[[Node], AbstractContextManager[Any]] | None = None) -> None:
        self.watch = watch
        self._known: dict[int, tuple[Graph, tuple[_Step, ...]]] = {}
        self._bodies: dict[Any, Graph | None] = {}
        self._made: dict[tuple[int, str], tuple[Node, Any]] = {}

    def of(self, graph: Graph) -> tuple[_Step, ...]:
        """Return the steps of a graph."""
        found = self._known.get(id(graph))
        if found is None:
            found = self._known[id(graph)] = graph, _steps(graph)  # kept, so that ids stay
        return found[1]

    def once(self, node: Node, key: str, make: Callable[[], Any]) -> Any:
        """Return what a rule makes of the attributes of a node alone, made once."""
        if (id(node), key) not in self._made:
            self._made[id(node), key] = node, make()  # the node is kept, so that ids stay
        return self._made[id(node), key][1]

    def body(self, node: Node, values: Sequence[Value]) -> Graph | None:
        """Return the graph that defines a node's operator for values of these types."""
        key = id(node), tuple(map(_described, values)) if depends_on_types(node) else ()
        if key not in self._bodies:
            graph = body_of(node, values)
            if graph is not None:  # a body has no nodes for outputs that the call leaves out
                graph = replace(graph, outputs=graph.outputs[: len(node.outputs)])
            self._bodies[key] = graph
        return self._bodies[key]


@dataclass(frozen=True, slots=True)
class Scope:
    """The values that a graph can use, and what runs the graphs inside of it."""

    values: dict[str, Value]
    plans: Plans
    outer: Scope | None = None
    graph: Graph | None = None

    def get(self, name: str) -> Value:
        """Return a value of this graph or of one around it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        raise KeyError(name)

    def keeping(self, *graphs: Graph) -> Scope:
        """Return a scope of what these graphs take from around them.

        Values are dropped after their last use, and a backward pass runs the graphs later.
        """
        names = frozenset().union(*(graph.free for graph in graphs))
        return Scope({name: self.get(name) for name in names}, self.plans)

    def run(self, graph: Graph, inputs: Sequence[Value]) -> list[Value]:
        """Run a graph inside of this one.

        Args:
            graph: an attribute of a node.
            inputs: one for each of its inputs, in their order.

        Returns:
            Its outputs, in their order.

        """
        values = dict(zip((info.name for info in graph.inputs), inputs, strict=True))
        return run_graph(graph, values, self.plans, self)


def run_graph(
    graph: Graph,
    values: Mapping[str, Value],
    plans: Plans,
    outer: Scope | None = None,
) -> list[Value]:
    """Return the outputs of a graph.

    Args:
        graph: what to run.
        values: the inputs by name, and values for some of the initializers.
        plans: kept from call to call.
        outer: the scope of the graph around this one.

    Raises:
        NodeError: a node failed.
        UnsupportedError: there is no rule for one.
        ValueNeededError: while it is compiled, a node needs the value of a tensor.

    """
    scope = Scope({**graph.initializers, **values}, plans, outer, graph)
    for step in plans.of(graph):
        with nullcontext() if plans.watch is None else plans.watch(step.node):
            _run_step(step, scope)
    return [scope.get(info.name) for info in graph.outputs]


def _run_step(step: _Step, scope: Scope) -> None:
    node = step.node
    outputs = _computed(step, scope)
    if any(node.outputs[len(outputs) :]):
        raise NodeError(f"{node} has {len(node.outputs)} outputs, {len(outputs)} are computed")
    for name, value in zip(node.outputs, outputs, strict=False):
        if name:
            scope.values[name] = value
    for name in step.dropped:
        scope.values.pop(name, None)


def _computed(step: _Step, scope: Scope) -> Sequence[Value]:
    node = step.node
    inputs = [scope.get(name) if name else None for name in node.inputs]
    try:
        if step.rule is None:
            return _by_body(node, inputs, scope)
        return _by_rule(step.rule, node, inputs, scope)
    except tp.errors.DataNeededError as error:
        raise ValueNeededError(
            f"{node}: a compiled model must not depend on the values of its inputs here: {error}"
        ) from error
    except UnsupportedError as error:
        if str(error).startswith("node "):  # named already: this one, or one in its graphs
            raise
        raise UnsupportedError(f"{node}: {error}") from error
    except OnnxError:
        raise
    except Exception as error:  # a backend may raise anything; the cause is attached
        given = ", ".join(map(_described, inputs))
        raise NodeError(f"{node} with {given}: {str(error) or type(error).__name__}") from error


def _by_rule(rule: Rule, node: Node, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    unknown = node.attributes.keys() - rule.attributes
    if unknown:
        raise UnsupportedError(f"{node}: the rule takes no attribute {min(unknown)!r}")
    count = len(inputs)
    on_host = rule.read_on_host(count)
    others = [at for at in range(count) if at not in on_host]
    given: list[Any] = list(inputs)
    extras: dict[str, Any] = dict(node.attributes)
    narrow: dict[int, str] = {}
    for at in on_host:
        given[at] = as_host(given[at])
    if "xp" in rule.asks:
        extras["xp"] = namespace(*(given[at] for at in others))
    if not rule.raw:
        narrow = widened(given, others, node, host=extras.get("xp") is np)
    if not rule.raw and extras.get("xp") is not np:
        for at in others:
            given[at] = as_tensor(given[at])
    if "node" in rule.asks:
        extras["node"] = node
    if "scope" in rule.asks:
        extras["scope"] = scope
    found = rule.function(*given, **extras)
    outputs: Sequence[Any] = found if isinstance(found, tuple) else (found,)
    if narrow:
        outputs = narrowed(outputs, node, narrow)
    return [_whole(one) for one in outputs]


def _whole(value: Any) -> Any:
    """Return an array of rank 0 where NumPy's functions return a number or a text."""
    if isinstance(value, str):
        return np.asarray(value, np.dtypes.StringDType())
    return np.asarray(value) if isinstance(value, np.generic) else value


def _by_body(node: Node, inputs: list[Value], scope: Scope) -> Sequence[Value]:
    graph = scope.plans.body(node, inputs)
    if graph is None:
        raise UnsupportedError(f"{node}: there is no rule for this operator")
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


def _described(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_described, value))}]"
    if not isinstance(value, np.ndarray | tp.Tensor):
        return "nothing" if value is None else type(value).__name__
    return f"{dtype_of(value)}{list(value.shape)}".replace(" ", "")
