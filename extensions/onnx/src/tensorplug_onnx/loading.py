"""From a file or a protobuf to a ``Graph``."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from tensorplug_onnx.errors import ModelError, OnnxError, UnsupportedError
from tensorplug_onnx.external import is_external, read_external
from tensorplug_onnx.graph import Graph, Node, ValueInfo
from tensorplug_onnx.inlining import Functions
from tensorplug_onnx.rules import MICROSOFT, lookup

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tensorplug_onnx.values import Host


_DOMAINS: Final = {"ai.onnx": ""}
# onnxruntime has operators of ONNX's domain that ONNX lacks, at all or in older opsets.
_FOREIGN: Final = ("SimplifiedLayerNormalization", "LayerNormalization")
_ELEMENT_TYPES: Final = frozenset(TensorProto.DataType.values()) - {TensorProto.UNDEFINED}
_MOST_BYTES: Final = (1 << 31) - 1  # of a protobuf message
_LARGE: Final = 1 << 10  # bytes of an initializer that the checker does not see
_MOST_ZEROS: Final = 1 << 28  # elements of a sparse constant that its file does not have


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
    functions: Functions


def load_graph(source: Any) -> Loaded:
    """Return the graph of a model.

    Args:
        source: a path, the bytes of a file, a binary file, or a ``ModelProto``.

    Raises:
        ModelError: it is not a valid model.
        ExternalDataError: weights in other files cannot be read.
        UnsupportedError: it is of an opset that the installed onnx does not know.
        FileNotFoundError: there is no such file.

    """
    proto, folder = _read(source)
    try:
        _check(proto)
        opsets = {_domain(entry.domain): entry.version for entry in proto.opset_import}
        newest = onnx.defs.onnx_opset_version()
        if opsets.get("", 1) > newest:
            raise UnsupportedError(
                f"the model is of opset {opsets['']}; the installed onnx knows them up to {newest}"
            )
        graph = _graph(proto.graph, _Context(opsets, folder, Functions(proto.functions)))
        producer = " ".join(filter(None, (proto.producer_name, proto.producer_version)))
        metadata = {entry.key: entry.value for entry in proto.metadata_props}
    except (OnnxError, MemoryError):
        raise
    except Exception as error:  # protobuf and onnx document none of what they raise
        raise ModelError(f"the model is not valid: {type(error).__name__}: {error}") from error
    if graph.free:
        names = ", ".join(sorted(map(repr, graph.free)))
        raise ModelError(f"graph {graph.name!r} uses {names}, which nothing before computes")
    return Loaded(graph, opsets, producer, metadata)


def _read(source: Any) -> tuple[onnx.ModelProto, Path | None]:
    if isinstance(source, onnx.ModelProto):
        return source, None
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        _check_size(path.stat().st_size, str(path))
        return _parsed(path.read_bytes(), str(path)), path.parent
    if not isinstance(source, bytes | bytearray | memoryview) and not hasattr(source, "read"):
        raise ModelError(
            "a model is a path, bytes, a binary file or a ModelProto, "
            f"not {type(source).__qualname__}"
        )
    data = source if isinstance(source, bytes | bytearray | memoryview) else source.read()
    _check_size(len(data), "the bytes given")
    return _parsed(bytes(data), "the bytes given"), None


def _check_size(size: int, what: str) -> None:
    if size > _MOST_BYTES:
        raise ModelError(
            f"{what}: {size} bytes, a protobuf has at most {_MOST_BYTES}: keep the weights in "
            "another file, by onnx.save(model, path, save_as_external_data=True)"
        )


def _parsed(data: bytes, what: str) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except (DecodeError, RecursionError) as error:
        raise ModelError(f"{what}: not an ONNX model, or only a part of one: {error}") from None
    return proto


def _check(proto: onnx.ModelProto) -> None:
    """Compare a model with ONNX's rules.

    Raises:
        ModelError: it breaks one.

    """
    if not proto.HasField("graph") or not proto.opset_import:
        raise ModelError("the model has no graph, or imports no opset")
    checked = _without_weights(proto)
    opsets = {_domain(entry.domain): entry.version for entry in proto.opset_import}
    for node in (one for one in checked.graph.node if _is_foreign(one, opsets)):
        node.domain = MICROSOFT
        if MICROSOFT not in opsets:
            opsets[MICROSOFT] = 1
            checked.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    for info in _infos(checked):
        if not _has_shape(info):  # the checker asks for it, and many a writer leaves it out
            info.type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, ()))
    for tensor in filter(is_external, _tensors(checked)):
        # The checker looks for the files from the current folder; they are checked when read.
        tensor.CopyFrom(_empty(tensor))
    try:
        onnx.checker.check_model(checked)
    except onnx.checker.ValidationError as error:
        raise ModelError(f"the model is not valid: {str(error).strip()}") from None


def _without_weights(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy whose large initializers are empty: the checker writes all to a string."""
    copy = onnx.ModelProto()
    _copy_fields(proto, copy, but="graph")
    _copy_fields(proto.graph, copy.graph, but="initializer")
    for tensor in proto.graph.initializer:
        copy.graph.initializer.append(_empty(tensor) if tensor.ByteSize() > _LARGE else tensor)
    copy.graph.SetInParent()
    return copy


def _copy_fields(source: Any, target: Any, *, but: str) -> None:
    for descriptor, value in source.ListFields():
        if descriptor.name == but:
            continue
        if hasattr(value, "MergeFrom") or hasattr(value, "extend"):
            getattr(target, descriptor.name).MergeFrom(value)
        else:
            setattr(target, descriptor.name, value)


def _empty(tensor: TensorProto) -> TensorProto:
    return TensorProto(name=tensor.name, data_type=tensor.data_type, dims=[0], raw_data=b"")


def _infos(proto: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    return [*proto.graph.input, *proto.graph.output]


def _has_shape(info: onnx.ValueInfoProto) -> bool:
    kind = info.type.WhichOneof("value")
    return kind is not None and (kind != "tensor_type" or info.type.tensor_type.HasField("shape"))


def _tensors(proto: onnx.ModelProto) -> list[TensorProto]:
    """Return all tensors of a model."""
    found: list[TensorProto] = []
    graphs = [proto.graph]
    for training in proto.training_info:
        graphs += [training.initialization, training.algorithm]
    holders: list[onnx.GraphProto | onnx.FunctionProto] = [*graphs, *proto.functions]
    while holders:
        holder = holders.pop()
        sparse = []
        if isinstance(holder, onnx.GraphProto):
            found += holder.initializer
            sparse += holder.sparse_initializer
        for attribute in _attributes(holder):
            found += [attribute.t, *attribute.tensors]
            sparse += [attribute.sparse_tensor, *attribute.sparse_tensors]
            inner = [attribute.g] if attribute.HasField("g") else []
            holders += [*inner, *attribute.graphs]
        for one in sparse:
            found += [one.values, one.indices]
    return found


def _attributes(holder: onnx.GraphProto | onnx.FunctionProto) -> Iterator[AttributeProto]:
    for node in holder.node:
        yield from node.attribute
    if isinstance(holder, onnx.FunctionProto):
        yield from holder.attribute_proto


def graph_of(
    proto: onnx.GraphProto | onnx.FunctionProto,
    opsets: Mapping[str, int],
    folder: Path | None = None,
) -> Graph:
    """Return a graph, or the body of a function."""
    return _graph(proto, _Context(opsets, folder, Functions(())))


def _graph(proto: onnx.GraphProto | onnx.FunctionProto, context: _Context) -> Graph:
    initializers: dict[str, Host] = {}
    defaults: tuple[ValueInfo, ...] = ()
    if isinstance(proto, onnx.FunctionProto):
        inputs = tuple(ValueInfo(name) for name in proto.input)
        outputs = tuple(ValueInfo(name) for name in proto.output)
    else:
        folder = context.folder
        initializers |= {one.name: host_array(one, folder) for one in proto.initializer}
        initializers |= {one.values.name: _dense(one, folder) for one in proto.sparse_initializer}
        infos = tuple(map(_info, proto.input))
        inputs = tuple(info for info in infos if info.name not in initializers)
        defaults = tuple(info for info in infos if info.name in initializers)
        outputs = tuple(map(_info, proto.output))
    nodes = tuple(
        _node(node, replace(context, opsets=opsets))
        for node, opsets in context.functions.expanded(proto.node, context.opsets)
    )
    _check_text(info.name for info in (*inputs, *defaults, *outputs))
    _check_text(initializers)
    free = _free({info.name for info in inputs} | set(initializers), nodes, outputs)
    return Graph(proto.name, inputs, outputs, initializers, nodes, free, defaults)


def _check_text(names: Iterable[str | bytes]) -> None:
    """Raise an error if a name is not UTF-8: protobuf then returns bytes."""
    for name in names:
        if not isinstance(name, str):
            raise ModelError(f"name {name!r} is not UTF-8")


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


def _is_foreign(proto: onnx.NodeProto, opsets: Mapping[str, int]) -> bool:
    """Return whether an operator of ONNX's domain is onnxruntime's."""
    return (
        proto.op_type in _FOREIGN
        and not _domain(proto.domain)
        and not onnx.defs.has(proto.op_type, opsets.get("", 1), "")
    )


def _node(proto: onnx.NodeProto, context: _Context) -> Node:
    _check_text((proto.op_type, proto.domain, proto.name, *proto.input, *proto.output))
    _check_text(attribute.name for attribute in proto.attribute)
    opsets, domain = context.opsets, _domain(proto.domain)
    if domain not in opsets:
        raise ModelError(f"node {proto.name!r} is of domain {domain!r}, which is not imported")
    domain, version = (MICROSOFT, 1) if _is_foreign(proto, opsets) else (domain, opsets[domain])
    kept = onnx.NodeProto()  # parts of a model keep all of it in memory
    if lookup(proto.op_type, domain, version) is None:
        kept.CopyFrom(proto)
    return Node(
        proto.op_type,
        domain,
        version,
        proto.name,
        tuple(proto.input),
        tuple(proto.output),
        {one.name: _attribute(one, context) for one in proto.attribute},
        kept,
    )


def _attribute(proto: AttributeProto, context: _Context) -> Any:
    if proto.ref_attr_name:
        raise ModelError(f"attribute {proto.name!r} refers to one of a function around it")
    kind = proto.type
    if kind == AttributeProto.TENSOR:
        return host_array(proto.t, context.folder)
    if kind == AttributeProto.GRAPH:
        return _graph(proto.g, context)
    if kind == AttributeProto.SPARSE_TENSOR:
        return _dense(proto.sparse_tensor, context.folder)
    if kind == AttributeProto.SPARSE_TENSORS:
        return tuple(_dense(one, context.folder) for one in proto.sparse_tensors)
    if kind == AttributeProto.TENSORS:
        return tuple(host_array(one, context.folder) for one in proto.tensors)
    if kind == AttributeProto.GRAPHS:
        return tuple(_graph(one, context) for one in proto.graphs)
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
    if tensor.data_type not in _ELEMENT_TYPES:
        raise ModelError(f"tensor {tensor.name!r}: there is no element type {tensor.data_type}")
    try:
        array = np.asarray(numpy_helper.to_array(tensor))
        if array.dtype.kind in "OSU":
            texts = [
                text.decode() if isinstance(text, bytes) else str(text) for text in array.flat
            ]
            return np.array(texts, np.dtypes.StringDType()).reshape(array.shape)
    except (ValueError, TypeError) as error:
        raise ModelError(f"tensor {tensor.name!r}: {error}") from None
    return array


def _dense(sparse: onnx.SparseTensorProto, folder: Path | None) -> Host:
    """Return a sparse constant with its zeros."""
    values, at = host_array(sparse.values, folder), host_array(sparse.indices, folder)
    name, shape = sparse.values.name, tuple(sparse.dims)
    size = math.prod(shape)
    if min(shape, default=0) < 0 or size > _MOST_ZEROS:
        raise ModelError(f"sparse tensor {name!r}: shape {list(shape)} is negative or too large")
    dense = np.zeros(shape, values.dtype)
    places = at if at.ndim == 1 else np.ravel_multi_index(tuple(at.T), dense.shape)
    if places.size and not 0 <= places.min() <= places.max() < size:
        raise ModelError(f"sparse tensor {name!r}: an index is not in shape {list(shape)}")
    dense.reshape(-1)[places] = values
    return dense


def _info(proto: onnx.ValueInfoProto) -> ValueInfo:
    kind = proto.type.WhichOneof("value") or "tensor_type"
    if kind not in ("tensor_type", "sparse_tensor_type"):
        return ValueInfo(proto.name, kind=kind.removesuffix("_type"))
    tensor = getattr(proto.type, kind)
    shape = None
    if tensor.HasField("shape"):
        shape = tuple(map(_size, tensor.shape.dim))
    return ValueInfo(proto.name, _dtype_name(tensor.elem_type), shape)


def _size(dim: Any) -> int | str | None:
    if not dim.HasField("dim_value"):
        return dim.dim_param or None
    return dim.dim_value if dim.dim_value >= 0 else None  # some programs write -1 for any size


def _dtype_name(elem_type: int) -> str:
    if elem_type == TensorProto.UNDEFINED:
        return ""
    if elem_type == TensorProto.STRING:
        return "string"
    if elem_type not in _ELEMENT_TYPES:
        raise ModelError(f"there is no element type {elem_type}")
    return str(helper.tensor_dtype_to_np_dtype(elem_type))
