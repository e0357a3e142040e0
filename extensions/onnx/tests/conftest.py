from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from onnx import TensorProto, helper, numpy_helper

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import onnx

NEWEST = 20


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    with tp.use_backend("cpu"):
        yield


@pytest.fixture
def make() -> Callable[..., onnx.ModelProto]:
    """Return a function that makes a model of nodes; inputs are float32 unless they say more."""

    def made(
        nodes: Sequence[onnx.NodeProto],
        inputs: Mapping[str, Any],
        outputs: Sequence[str],
        constants: Mapping[str, Any] | None = None,
        opset: int = NEWEST,
    ) -> onnx.ModelProto:
        infos = [
            shape
            if not isinstance(shape, tuple | list)
            else helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in inputs.items()
        ]
        found = [helper.make_empty_tensor_value_info(name) for name in outputs]
        known = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
        graph = helper.make_graph(nodes, "graph", infos, found, known)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])

    return made
