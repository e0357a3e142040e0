"""Which inputs of a model decide shapes, or which branch runs, by their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug_onnx.functions import body_of, depends_on_types
from tensorplug_onnx.loading import graphs_in
from tensorplug_onnx.rules import lookup

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorplug_onnx.graph import Graph, Node


# Op types whose outputs depend on the types of their inputs alone.
_OF_TYPES: Final = {
    "Shape", "Size", "EyeLike", "SequenceLength", "RandomNormalLike", "RandomUniformLike",
}  # fmt: skip
# Inputs that are shapes where a body depends on types, and is not known yet.
_OF_BODIES: Final = {"CenterCropPad": {1}}


def shaping_inputs(graph: Graph) -> frozenset[str]:
    """Return the inputs whose values a node of the graph may read on the host.

    These are the inputs that lead to what a rule reads there (a shape, axes, a count), not only
    through ``Shape`` and the like, to the number of steps of loops that stack results, and to the
    conditions of ``If``: a branch for other shapes than the given ones cannot be traced.
    """
    read = _read(graph)
    return frozenset(info.name for info in (*graph.inputs, *graph.defaults) if info.name in read)


def _read(graph: Graph, outputs: Iterable[str] = ()) -> set[str]:
    """Return the names whose values are read, or lead to one of these outputs."""
    read = set(outputs)
    for node in reversed(graph.nodes):
        if not read.isdisjoint(node.outputs) and node.op_type not in _OF_TYPES:
            read.update(node.inputs)
            for inner in graphs_in(node.attributes):
                read |= inner.free
        read |= {node.inputs[at] for at in _positions(node)}
        for inner in graphs_in(node.attributes):
            inside = _read(inner)
            read |= inside & inner.free
            if len(inner.inputs) == len(node.inputs):
                names = zip(inner.inputs, node.inputs, strict=True)
                read |= {name for info, name in names if info.name in inside}
    return read - {""}


def _positions(node: Node) -> set[int]:
    """Return which inputs of a node are read on the host."""
    count = len(node.inputs)
    rule = lookup(node.op_type, node.domain, node.version)
    if rule is not None:
        found = rule.read_on_host(count)
    elif depends_on_types(node):
        found = _OF_BODIES.get(node.op_type, set())
    else:
        body = body_of(node, ())
        inside = set() if body is None else _read(body)
        found = {at for at, info in enumerate(body.inputs if body else ()) if info.name in inside}
    if node.op_type == "If":
        found = {0}
    if node.op_type == "Loop":
        carried = len(node.attributes["body"].inputs) - 2
        if len(node.outputs) > carried:
            found = {*found, 0, 1}
    return found.intersection(range(count))
