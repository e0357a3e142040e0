"""Calls of a model's own functions, replaced by the nodes of these functions."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

import onnx
from onnx import AttributeProto, NodeProto, helper

from tensorplug_onnx.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


_MOST_NODES: Final = 100_000  # functions that call others twice each grow without end

Key = tuple[str, str, str]


class Functions:
    """The functions of a model, by domain, name and overload.

    Raises:
        ModelError: a function calls itself, or all its calls together have too many nodes.

    """

    def __init__(self, protos: Iterable[onnx.FunctionProto]) -> None:
        self._known = {(one.domain, one.name, one.overload): one for one in protos}
        self._fresh = count()
        self._sizes: dict[Key, int | None] = {}
        for key in self._known:
            self._size(key)

    def expanded(
        self, nodes: Iterable[NodeProto], opsets: Mapping[str, int]
    ) -> Iterator[tuple[NodeProto, Mapping[str, int]]]:
        """Return nodes without calls of functions, each with the opsets that it is of."""
        for node in nodes:
            function = self._known.get(_key(node))
            if function is None:
                yield node, opsets
            else:
                own = {"": 1, **{entry.domain: entry.version for entry in function.opset_import}}
                yield from self.expanded(self._body(function, node), own)

    def _size(self, key: Key) -> int:
        """Return how many nodes a call becomes."""
        if key not in self._sizes:
            self._sizes[key] = None  # being counted
            nodes = self._known[key].node
            self._sizes[key] = 1 + sum(self._size_of(node) for node in nodes)
        size = self._sizes[key]
        if size is None:
            raise ModelError(f"function {key[1]!r} calls itself")
        if size > _MOST_NODES:
            raise ModelError(
                f"a call of function {key[1]!r} becomes more than {_MOST_NODES} nodes"
            )
        return size

    def _size_of(self, node: NodeProto) -> int:
        inside = sum(
            self._size_of(inner)
            for attribute in node.attribute
            for graph in _graphs(attribute)
            for inner in graph.node
        )
        key = _key(node)
        return inside + (self._size(key) if key in self._known else 1)

    def _body(self, function: onnx.FunctionProto, call: NodeProto) -> list[NodeProto]:
        """Return the nodes of a call, with the caller's names for inputs and outputs."""
        if len(call.input) > len(function.input) or len(call.output) > len(function.output):
            raise ModelError(
                f"node {call.name!r}: function {function.name!r} has {len(function.input)} inputs "
                f"and {len(function.output)} outputs, the call {len(call.input)} and "
                f"{len(call.output)}"
            )
        given = {one.name: one for one in call.attribute}
        given |= {one.name: one for one in function.attribute_proto if one.name not in given}
        prefix = f"{call.name or function.name}/{next(self._fresh)}/"
        names = dict.fromkeys(function.input, "")
        names |= dict(zip(function.input, call.input, strict=False))
        direct = set(names).intersection(function.output)
        names |= {
            name: actual
            for name, actual in zip(function.output, call.output, strict=False)
            if actual and name not in direct
        }
        body = []
        for inner in function.node:
            node = NodeProto()
            node.CopyFrom(inner)
            resolve_attributes(node, given)
            node.name = prefix + inner.name
            _rename(node, names, prefix)
            body.append(node)
        for name, actual in zip(function.output, call.output, strict=False):
            if actual and name in direct:
                body.append(helper.make_node("Identity", [names[name]], [actual]))
        return body


def _key(node: NodeProto) -> Key:
    return node.domain, node.op_type, node.overload


def resolve_attributes(node: NodeProto, given: Mapping[str, AttributeProto]) -> None:
    """Put the attributes of a call in the place of references to them."""
    kept = []
    for attribute in node.attribute:
        found = AttributeProto()
        if attribute.ref_attr_name:
            if attribute.ref_attr_name not in given:
                continue  # left out by the call: the operator's default holds
            found.CopyFrom(given[attribute.ref_attr_name])
            found.name = attribute.name
        else:
            found.CopyFrom(attribute)
            for graph in (found.g, *found.graphs):
                for inner in graph.node:
                    resolve_attributes(inner, given)
        kept.append(found)
    del node.attribute[:]
    node.attribute.extend(kept)


def _rename(node: NodeProto, names: dict[str, str], prefix: str, *, shadows: bool = False) -> None:
    """Give a node other names; what it defines gets the prefix, unless it has a name already."""
    node.input[:] = [names.get(name, prefix + name) if name else "" for name in node.input]
    for attribute in node.attribute:
        for graph in _graphs(attribute):
            _rename_graph(graph, dict(names), prefix)
    for name in node.output:
        if name and (shadows or name not in names):
            names[name] = prefix + name
    node.output[:] = [names[name] if name else "" for name in node.output]


def _graphs(attribute: AttributeProto) -> list[onnx.GraphProto]:
    if attribute.type == AttributeProto.GRAPH:
        return [attribute.g]
    return list(attribute.graphs)


def _rename_graph(graph: onnx.GraphProto, names: dict[str, str], prefix: str) -> None:
    inner = f"{prefix}{graph.name}/"
    for one in (*graph.input, *graph.initializer):
        names[one.name] = one.name = inner + one.name
    for sparse in graph.sparse_initializer:
        names[sparse.values.name] = sparse.values.name = inner + sparse.values.name
    for node in graph.node:
        _rename(node, names, inner, shadows=True)
    for info in graph.output:
        info.name = names.get(info.name, info.name)
