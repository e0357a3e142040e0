"""Operators without a rule that ONNX defines as functions of others: by their bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper

from tensorplug_onnx.inlining import resolve_attributes
from tensorplug_onnx.loading import graph_of
from tensorplug_onnx.values import Value, dtype_of, to_numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_onnx.graph import Graph, Node


def has_body(node: Node) -> bool:
    """Return whether ONNX defines the operator by others."""
    schema = _schema(node)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def depends_on_types(node: Node) -> bool:
    """Return whether the body differs with the types of the inputs."""
    schema = _schema(node)
    return schema is not None and bool(schema.has_context_dependent_function)


def body_of(node: Node, values: Sequence[Value]) -> Graph | None:
    """Return the graph that computes a node for values of these types; None if there is none."""
    schema = _schema(node)
    if schema is None:
        return None
    proto = node.proto
    text: bytes | None = None
    if schema.has_context_dependent_function:
        types = [_type_proto(value).SerializeToString() for value in values]
        version = _newest(schema.context_dependent_function_opset_versions, node)
        if version is not None:
            text = schema.get_context_dependent_function_with_opset_version(
                version, proto.SerializeToString(), types
            )
    if not text and schema.has_function:
        version = _newest(schema.function_opset_versions, node)
        if version is not None:
            text = schema.get_function_with_opset_version(version)
    if not text:
        return None
    function = onnx.FunctionProto()
    function.ParseFromString(text)
    given = {attribute.name: attribute for attribute in proto.attribute}
    given |= {one.name: one for one in function.attribute_proto if one.name not in given}
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.type:
            given[name] = attribute.default_value
    for inner in function.node:
        resolve_attributes(inner, given)
    opsets = {entry.domain: entry.version for entry in function.opset_import}
    return graph_of(function, {**opsets, node.domain: opsets.get(node.domain, node.version)})


def _newest(versions: Sequence[int], node: Node) -> int | None:
    return max((version for version in versions if version <= node.version), default=None)


def _schema(node: Node) -> Any:
    try:
        return onnx.defs.get_schema(node.op_type, node.version, node.domain)
    except onnx.defs.SchemaError:
        return None


def _type_proto(value: Value) -> onnx.TypeProto:
    if value is None:
        return onnx.TypeProto()
    if isinstance(value, list):
        element = _type_proto(value[0]) if value else onnx.TypeProto()
        return helper.make_sequence_type_proto(element)
    assert not isinstance(value, dict)  # no function takes a map
    name = dtype_of(value)
    dtype = np.dtype(object) if name == "string" else to_numpy_dtype(name)
    return helper.make_tensor_type_proto(
        helper.np_dtype_to_tensor_dtype(dtype), tuple(value.shape)
    )
