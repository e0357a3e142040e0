"""A graph with less to do, for models whose parameters stay: what ``Model.compile`` runs.

- Nodes of constants alone are run once.
- Dropout and Identity vanish.
- A BatchNormalization that follows a convolution becomes part of its filter and bias.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_onnx.executing import Plans, run_graph
from tensorplug_onnx.graph import Graph, Node, ValueInfo
from tensorplug_onnx.loading import graphs_in
from tensorplug_onnx.values import as_host

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorplug_onnx.values import Host


_LARGEST: Final = 1 << 26  # bytes of a constant that is computed: larger ones are kept as nodes
_RANDOM: Final = {"Dropout", "Bernoulli", "Multinomial"}
_CONVOLUTIONS: Final = {"Conv": 0, "ConvTranspose": 1}  # the axis of the filter with the channels


def optimized(graph: Graph, parameters: Mapping[str, Host]) -> Graph:
    """Return a graph that gives the same, to rounding, with these parameters in it.

    Args:
        graph: of a model.
        parameters: host arrays by name, in the place of the graph's own.

    Returns:
        A graph with other nodes and initializers; inputs and outputs are the same.

    """
    whole = replace(graph, initializers={**graph.initializers, **parameters})
    if any(node.op_type == "Gradient" for node in graph.nodes):
        return whole  # it names results of other nodes, and runs these once more
    return _without_unused(_normalized(_without_identities(_folded(whole))))


def _without_identities(graph: Graph) -> Graph:
    """Return a graph whose nodes take what Identity and Dropout take."""
    kept_names = {info.name for info in graph.outputs} | _names_inside(graph)
    renamed: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        inputs = tuple(renamed.get(name, name) for name in node.inputs)
        if _is_identity(node) and node.outputs[0] not in kept_names:
            renamed[node.outputs[0]] = inputs[0]
        else:
            nodes.append(replace(node, inputs=inputs))
    return replace(graph, nodes=tuple(nodes))


def _is_identity(node: Node) -> bool:
    if node.domain or any(node.outputs[1:]):
        return False
    trains = node.op_type == "Dropout" and any(node.inputs[2:])
    return node.op_type in ("Identity", "Dropout") and not trains


def _folded(graph: Graph) -> Graph:
    """Return a graph without the nodes that depend on no input."""
    constants = dict(graph.initializers)
    plans = Plans()
    nodes: list[Node] = []
    for node in graph.nodes:
        found = _constants_of(node, constants, plans)
        if found is None:
            nodes.append(node)
        else:
            constants |= found
    return replace(graph, nodes=tuple(nodes), initializers=constants)


def _constants_of(
    node: Node, constants: Mapping[str, Host], plans: Plans
) -> dict[str, Host] | None:
    """Return the outputs of a node if they are constants of a bearable size."""
    needed = {name for name in node.inputs if name}
    for inner in graphs_in(node.attributes):
        needed |= inner.free
    if not needed <= constants.keys() or _is_random(node):
        return None
    names = [name for name in node.outputs if name]
    one = Graph("constant", (), tuple(map(ValueInfo, names)), {}, (node,))
    found = [
        as_host(value)
        for value in run_graph(one, {name: constants[name] for name in needed}, plans)
    ]
    if not all(isinstance(value, np.ndarray) and value.nbytes <= _LARGEST for value in found):
        return None
    return dict(zip(names, found, strict=True))


def _is_random(node: Node) -> bool:
    inside = (other for graph in graphs_in(node.attributes) for other in graph.nodes)
    if any(map(_is_random, inside)):
        return True
    return node.op_type in _RANDOM or node.op_type.startswith("Random")


def _normalized(graph: Graph) -> Graph:
    """Return a graph whose convolutions do what the normalization after them did."""
    uses = Counter(name for node in graph.nodes for name in node.inputs)
    uses.update(info.name for info in graph.outputs)
    uses.update(_names_inside(graph))
    constants = dict(graph.initializers)
    made: dict[str, int] = {}  # output of a convolution -> its place
    nodes: list[Node] = []
    for node in graph.nodes:
        place = made.get(node.inputs[0]) if node.inputs else None
        if place is not None and uses[node.inputs[0]] == 1 and _is_inference(node, constants):
            nodes[place] = _with_normalization(nodes[place], node, constants)
            continue
        if (
            node.op_type in _CONVOLUTIONS
            and not node.domain
            and _has_constant_filter(node, constants)
        ):
            made[node.outputs[0]] = len(nodes)
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes), initializers=constants)


def _has_constant_filter(node: Node, constants: Mapping[str, Host]) -> bool:
    grouped = node.op_type == "ConvTranspose" and node.attributes.get("group", 1) != 1
    return not grouped and all(name in constants for name in node.inputs[1:] if name)


def _is_inference(node: Node, constants: Mapping[str, Host]) -> bool:
    trains = node.attributes.get("training_mode", 0) or any(node.outputs[1:])
    known = all(name in constants for name in node.inputs[1:])
    return node.op_type == "BatchNormalization" and not node.domain and known and not trains


def _with_normalization(convolution: Node, node: Node, constants: dict[str, Host]) -> Node:
    """Return a convolution by ``w * k`` with bias ``(b - mean) * k + offset``.

    ``k = scale / sqrt(variance + epsilon)``, computed in double precision.
    """
    scale, offset, mean, variance = (
        constants[name].astype(np.float64) for name in node.inputs[1:]
    )
    k = scale / np.sqrt(variance + node.attributes.get("epsilon", 1e-5))
    weights = constants[convolution.inputs[1]]
    axis = _CONVOLUTIONS[convolution.op_type]
    along = [1] * weights.ndim
    along[axis] = -1
    bias: Any = 0.0
    if len(convolution.inputs) > 2 and convolution.inputs[2]:
        bias = constants[convolution.inputs[2]].astype(np.float64)
    names = [f"{node.outputs[0]}:{what}" for what in ("filter", "bias")]
    constants[names[0]] = (weights * k.reshape(along)).astype(weights.dtype)
    constants[names[1]] = ((bias - mean) * k + offset).astype(weights.dtype)
    return replace(
        convolution,
        inputs=(convolution.inputs[0], *names),
        outputs=(node.outputs[0],),
    )


def _without_unused(graph: Graph) -> Graph:
    """Return a graph without nodes and constants that nothing needs."""
    needed = {info.name for info in graph.outputs}
    nodes: list[Node] = []
    for node in reversed(graph.nodes):
        if needed.isdisjoint(node.outputs):
            continue
        nodes.append(node)
        needed |= set(node.inputs)
        for inner in graphs_in(node.attributes):
            needed |= inner.free
    constants = {name: array for name, array in graph.initializers.items() if name in needed}
    return replace(graph, nodes=tuple(reversed(nodes)), initializers=constants)


def _names_inside(graph: Graph) -> set[str]:
    return {
        name for node in graph.nodes for inner in graphs_in(node.attributes) for name in inner.free
    }
