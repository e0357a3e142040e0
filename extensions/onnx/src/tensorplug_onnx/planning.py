"""What is known of a graph before it runs: the steps of its nodes, constants on the device."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp
from tensorplug_onnx.errors import NodeError, UnsupportedError
from tensorplug_onnx.functions import body_of, depends_on_types
from tensorplug_onnx.loading import graphs_in
from tensorplug_onnx.rules import lookup
from tensorplug_onnx.values import as_tensor, described

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from tensorplug_onnx.graph import Graph, Node
    from tensorplug_onnx.rules import Rule
    from tensorplug_onnx.values import Host, Value


@dataclass(frozen=True, slots=True)
class Step:
    """A node, and all of its call that does not depend on values.

    ``rule``: None for an operator that runs by its body. ``on_host`` and ``others``: positions of
    the inputs that the rule reads on the host, and of the other ones. ``of_tensors`` and
    ``of_arrays``: the keywords of the rule, but for the scope, where the other inputs are tensors,
    and where they are host arrays. ``constants``: inputs that are constants, by position.
    ``known``: the output of a Constant. ``dropped``: names that nothing needs after the node.
    """

    node: Node
    dropped: tuple[str, ...]
    rule: Rule | None = None
    on_host: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    of_tensors: Mapping[str, Any] = field(default_factory=dict)
    of_arrays: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[int, Host] = field(default_factory=dict)
    known: tuple[Host] | None = None


def _steps(graph: Graph) -> tuple[Step, ...]:
    constants = dict(graph.initializers)
    steps: list[Step] = []
    for node, names in zip(graph.nodes, _dropped(graph), strict=True):
        step = _step(node, names, constants)
        steps.append(step)
        if step.known is not None:
            constants[node.outputs[0]] = step.known[0]
    return tuple(steps)


def _step(node: Node, dropped: tuple[str, ...], constants: Mapping[str, Host]) -> Step:
    rule = lookup(node.op_type, node.domain, node.version)
    if rule is None:
        return Step(node, dropped)
    unknown = node.attributes.keys() - rule.attributes
    if unknown:
        raise UnsupportedError(f"{node}: the rule takes no attribute {min(unknown)!r}", node=node)
    count = len(node.inputs)
    on_host = rule.read_on_host(count)
    keywords = {**node.attributes, **({"node": node} if "node" in rule.asks else {})}
    asks_xp = "xp" in rule.asks
    known = None
    if (node.op_type, node.domain) == ("Constant", ""):
        try:
            known = (rule.function(**keywords),)
        except (TypeError, ValueError) as error:
            raise NodeError(f"{node}: {error}", node=node) from error
    return Step(
        node,
        dropped,
        rule,
        tuple(sorted(on_host)),
        tuple(at for at in range(count) if at not in on_host),
        {**keywords, "xp": tp} if asks_xp else keywords,
        {**keywords, "xp": np} if asks_xp else keywords,
        {at: constants[name] for at, name in enumerate(node.inputs) if name in constants},
        known,
    )


def _dropped(graph: Graph) -> list[tuple[str, ...]]:
    """Return the names that nothing needs after each node."""
    needed = {info.name for info in graph.outputs} | graph.initializers.keys()
    found: list[tuple[str, ...]] = []
    for node in reversed(graph.nodes):
        used = {name for name in node.inputs if name}
        for inner in graphs_in(node.attributes):
            used |= inner.free
        names = used | set(node.outputs)
        found.append(tuple(sorted(name for name in names - needed if name)))
        needed |= used
    return found[::-1]


class Plans:
    """What is worked out once for each graph, node and constant.

    ``watch``: where given, each node runs in the context that it returns for the node.
    """

    def __init__(self, watch: Callable[[Node], AbstractContextManager[Any]] | None = None) -> None:
        self.watch = watch
        self._known: dict[int, tuple[Graph, tuple[Step, ...]]] = {}
        self._bodies: dict[Any, Graph | None] = {}
        self._made: dict[tuple[int, str], tuple[Node, Any]] = {}
        self._prepared: dict[int, tuple[Sequence[Value], Any]] = {}
        self._on_device: dict[tuple[int, str], tuple[Host, Any]] = {}

    def of(self, graph: Graph) -> tuple[Step, ...]:
        """Return the steps of a graph.

        Raises:
            UnsupportedError: a rule does not take an attribute of its node.
            NodeError: a Constant is not valid.

        """
        found = self._known.get(id(graph))
        if found is None:
            found = self._known[id(graph)] = graph, _steps(graph)  # kept, so that ids stay
        return found[1]

    def once(self, node: Node, key: str, make: Callable[[], Any]) -> Any:
        """Return what a rule makes of the attributes of a node alone, made once."""
        if (id(node), key) not in self._made:
            self._made[id(node), key] = node, make()  # the node is kept, so that ids stay
        return self._made[id(node), key][1]

    def prepared(self, node: Node, weights: Sequence[Value], make: Callable[[], Any]) -> Any:
        """Return what a rule makes of weights of a node, made once for these weights."""
        found = self._prepared.get(id(node))
        if found is None or any(a is not b for a, b in zip(found[0], weights, strict=True)):
            found = self._prepared[id(node)] = tuple(weights), make()
        return found[1]

    def on_device(self, constant: Host) -> Any:
        """Return a constant on the active device, copied there once."""
        key = id(constant), tp.get_backend()
        found = self._on_device.get(key)
        if found is None:
            found = self._on_device[key] = constant, as_tensor(constant)
        return found[1]

    def put(self, constant: Host, tensor: Any) -> None:
        """Take a tensor for what a constant is on the device of the tensor."""
        self._on_device[id(constant), str(tensor.device)] = constant, tensor

    def body(self, node: Node, values: Sequence[Value]) -> Graph | None:
        """Return the graph that defines a node's operator for values of these types."""
        key = id(node), tuple(map(described, values)) if depends_on_types(node) else ()
        if key not in self._bodies:
            graph = body_of(node, values)
            if graph is not None:  # a body has no nodes for outputs that the call leaves out
                graph = replace(graph, outputs=graph.outputs[: len(node.outputs)])
            self._bodies[key] = graph
        return self._bodies[key]
