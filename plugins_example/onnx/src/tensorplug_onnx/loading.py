"""From a file or a protobuf to a ``Graph``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import AttributeProto, TensorProto, helper, inliner, numpy_helper

from tensorplug_onnx.errors import ModelError
from tensorplug_onnx.external import is_external, read_external
from tensorplug_onnx.graph import Graph, Node, ValueInfo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug_onnx.values import Host

__all__ = ["Loaded", "graph_of", "graphs_in", "host_array", "load_graph"]

_DOMAINS: Final = {"ai.onnx": ""}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A checked model: its graph, the versions of its opsets, and what it says of itself."""

    graph: Graph
    opsets: Mapping[str, int]
    producer: str
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Context:
    opsets: Mapping[str, int]
    folder: Path | None


def load_graph(source: Any) -> Loaded:
    """Return the graph of a model.

    Args:
        source: a path, the bytes of a file, a binary file, or a ``ModelProto``.

    Raises:
        ModelError: it is not a valid model.
        ExternalDataError: weights in other files cannot be read.
        FileNotFoundError: there is no such file.

    """
    proto, folder = _read(source)
    if proto.functions:
        proto = inliner.inline_local_functions(proto)
    opsets = {_domain(entry.domain): entry.version for entry in proto.opset_import}
    context = _Context(opsets, folder)
    graph = graph_of(proto.graph, context.opsets, context.folder)
    if graph.free:
        names = ", ".join(sorted(map(repr, graph.free)))
        raise ModelError(f"graph {graph.name!r} uses {names}, which nothing before computes")
    return Loaded(
        graph,
        opsets,
        " ".join(filter(None, (proto.producer_name, proto.producer_version))),
        {entry.key: entry.value for entry in proto.metadata_props},
    )


def _read(source: Any) -> tuple[onnx.ModelProto, Path | None]:
    if isinstance(source, onnx.ModelProto):
        return _checked(source, None), None
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return _checked(_parsed(path.read_bytes(), str(path)), path.parent), path.parent
    data = source if isinstance(source, bytes | bytearray | memoryview) else source.read()
    return _checked(_parsed(bytes(data), "the bytes given"), None), None


def _parsed(data: bytes, what: str) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError as error:
        raise ModelError(f"{what}: not an ONNX model, or only a part of one: {error}") from None
    return proto


def _checked(proto: onnx.ModelProto, folder: Path | None) -> onnx.ModelProto:
    if not proto.HasField("graph") or not proto.opset_import:
        raise ModelError("the model has no graph, or imports no opset")
    inside = proto
    untyped = [info for info in proto.graph.output if not _has_shape(info)]
    if untyped or _has_external(proto.graph):
        # The checker looks for the files from the current folder; they are checked when read.
        # It asks for types of outputs, which many a program that writes models leaves out.
        inside = onnx.ModelProto()
        inside.CopyFrom(proto)
        _forget_external(inside.graph)
        for info in inside.graph.output:
            if not _has_shape(info):
                info.type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, ()))
    del folder
    try:
        onnx.checker.check_model(inside)
    except onnx.checker.ValidationError as error:
        raise ModelError(f"the model is not valid: {str(error).strip()}") from None
    return proto


def _has_shape(info: onnx.ValueInfoProto) -> bool:
    kind = info.type.WhichOneof("value")
    return kind is not None and (kind != "tensor_type" or info.type.tensor_type.HasField("shape"))


def _tensors(graph: onnx.GraphProto) -> list[TensorProto]:
    found = list(graph.initializer)
    for node in graph.node:
        for attribute in node.attribute:
            found += [attribute.t, *attribute.tensors]
            for inner in (attribute.g, *attribute.graphs):
                found += _tensors(inner)
    return found


def _has_external(graph: onnx.GraphProto) -> bool:
    return any(map(is_external, _tensors(graph)))


def _forget_external(graph: onnx.GraphProto) -> None:
    for tensor in _tensors(graph):
        if is_external(tensor):
            name, data_type = tensor.name, tensor.data_type
            tensor.CopyFrom(TensorProto(name=name, data_type=data_type, dims=[0], raw_data=b""))


def graph_of(
    proto: onnx.GraphProto | onnx.FunctionProto,
    opsets: Mapping[str, int],
    folder: Path | None = None,
) -> Graph:
    """Return a graph, or the body of a function."""
    context = _Context(opsets, folder)
    if isinstance(proto, onnx.FunctionProto):
        inputs = tuple(ValueInfo(name) for name in proto.input)
        outputs = tuple(ValueInfo(name) for name in proto.output)
        initializers: dict[str, Host] = {}
    else:
        initializers = {one.name: host_array(one, folder) for one in proto.initializer}
        initializers |= {one.values.name: _dense(one) for one in proto.sparse_initializer}
        inputs = tuple(_info(one) for one in proto.input if one.name not in initializers)
        outputs = tuple(map(_info, proto.output))
    nodes = tuple(_node(node, context) for node in proto.node)
    free = _free({info.name for info in inputs} | set(initializers), nodes, outputs)
    return Graph(proto.name, inputs, outputs, initializers, nodes, free)


def _free(bound: set[str], nodes: Sequence[Node], outputs: Sequence[ValueInfo]) -> frozenset[str]:
    free: set[str] = set()
    for node in nodes:
        free |= {name for name in node.inputs if name} - bound
        for graph in graphs_in(node.attributes):
            free |= graph.free - bound
        bound |= set(node.outputs)
    return frozenset(free | ({info.name for info in outputs} - bound))


def graphs_in(attributes: Mapping[str, Any]) -> list[Graph]:
    """Return the graphs among the attributes of a node."""
    found: list[Graph] = []
    for value in attributes.values():
        if isinstance(value, Graph):
            found.append(value)
        elif isinstance(value, tuple):
            found += [one for one in value if isinstance(one, Graph)]
    return found


def _domain(name: str) -> str:
    return _DOMAINS.get(name, name)


def _node(proto: onnx.NodeProto, context: _Context) -> Node:
    domain = _domain(proto.domain)
    if domain not in context.opsets:
        raise ModelError(f"node {proto.name!r} is of domain {domain!r}, which is not imported")
    return Node(
        proto.op_type,
        domain,
        context.opsets[domain],
        proto.name,
        tuple(proto.input),
        tuple(proto.output),
        {one.name: _attribute(one, context) for one in proto.attribute},
        proto,
    )


def _attribute(proto: AttributeProto, context: _Context) -> Any:
    if proto.ref_attr_name:
        raise ModelError(f"attribute {proto.name!r} refers to one of a function around it")
    kind = proto.type
    if kind == AttributeProto.TENSOR:
        return host_array(proto.t, context.folder)
    if kind == AttributeProto.GRAPH:
        return graph_of(proto.g, context.opsets, context.folder)
    if kind == AttributeProto.SPARSE_TENSOR:
        return _dense(proto.sparse_tensor)
    if kind == AttributeProto.TENSORS:
        return tuple(host_array(one, context.folder) for one in proto.tensors)
    if kind == AttributeProto.GRAPHS:
        return tuple(graph_of(one, context.opsets, context.folder) for one in proto.graphs)
    return _plain(helper.get_attribute_value(proto))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, str | int | float | onnx.TypeProto):
        return value
    return tuple(map(_plain, value))


def host_array(tensor: TensorProto, folder: Path | None = None) -> Host:
    """Return the elements of a tensor on the host; text has NumPy's StringDType.

    Raises:
        ModelError: they do not fit to its shape and dtype.

    """
    if is_external(tensor):
        return read_external(tensor, folder)
    try:
        array = np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError) as error:
        raise ModelError(f"tensor {tensor.name!r}: {error}") from None
    if array.dtype.kind in "OSU":
        texts = [text.decode() if isinstance(text, bytes) else str(text) for text in array.flat]
        return np.array(texts, np.dtypes.StringDType()).reshape(array.shape)
    return array


def _dense(sparse: onnx.SparseTensorProto) -> Host:
    """Return a sparse constant with its zeros."""
    values, at = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
    dense = np.zeros(tuple(sparse.dims), values.dtype)
    places = at if at.ndim == 1 else np.ravel_multi_index(tuple(at.T), dense.shape)
    dense.reshape(-1)[places] = values
    return dense


def _info(proto: onnx.ValueInfoProto) -> ValueInfo:
    kind = proto.type.WhichOneof("value") or "tensor_type"
    if kind not in ("tensor_type", "sparse_tensor_type"):
        return ValueInfo(proto.name, kind=kind.removesuffix("_type"))
    tensor = getattr(proto.type, kind)
    shape = None
    if tensor.HasField("shape"):
        shape = tuple(
            dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None
            for dim in tensor.shape.dim
        )
    return ValueInfo(proto.name, _dtype_name(tensor.elem_type), shape)


def _dtype_name(elem_type: int) -> str:
    if elem_type == TensorProto.UNDEFINED:
        return ""
    if elem_type == TensorProto.STRING:
        return "string"
    return str(helper.tensor_dtype_to_np_dtype(elem_type))
