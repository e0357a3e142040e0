"""Operators of onnxruntime's domain: against formulas in float64, and against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import tensorplug_onnx
from tensorplug_onnx import NodeError, UnsupportedError
from tensorplug_onnx.rules import MICROSOFT

from .microsoft_cases import (
    A_8,
    CASES,
    CODE_SCALES,
    FILTERS,
    GAMMA,
    IMAGES,
    ROWS,
    WEIGHTS,
    A,
    X,
    f,
    layer_norm,
    rms_norm,
    u,
)
from .one_operator import NEWEST, WAYS, assert_same, outputs_of, proto_of


def check(found, expected):
    for one, right in zip(found, expected, strict=True):
        if right is None:
            continue
        if right.dtype.kind in "iub":
            assert_same(one, right)
        else:
            assert one.shape == right.shape
            assert str(one.dtype) == "float32"
            np.testing.assert_allclose(one, right, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_operators(name, way):
    op_type, inputs, attributes, expected = CASES[name]
    found = outputs_of(way, op_type, inputs, attributes, outputs=len(expected), domain=MICROSOFT)
    check(found, expected)


# What onnxruntime has on other devices only, or in ONNX's domain, or rounds otherwise.
OTHERS = {
    "convolution of planes", "groups, a sink and a cap", "integers", "mean", "softmax of a sum",
    "rms", "multiply, without zero points", "sigmoid", "softmax", "softmax of opset 11",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CASES.keys() - OTHERS))
def test_onnxruntime_says_so_too(name):
    runtime = pytest.importorskip("onnxruntime")
    op_type, inputs, attributes, expected = CASES[name]
    proto = proto_of(
        op_type, inputs, attributes, outputs=len(expected), domain=MICROSOFT, opset=21,
        constant=tuple(range(1, len(inputs))),
    )  # fmt: skip
    proto.ir_version = 10
    session = runtime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [f"y{at}" for at, one in enumerate(expected) if one is not None]
    found = session.run(names, {"x0": inputs[0]})
    check(found, [one for one in expected if one is not None])


def test_operators_that_onnxruntime_has_in_the_domain_of_onnx():
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (2, 3, 8)) for name in "xy")
    for op_type, opset, expected in (
        ("SimplifiedLayerNormalization", NEWEST, rms_norm(X, GAMMA, 1e-5)),
        ("LayerNormalization", 13, layer_norm(X, GAMMA, epsilon=1e-5)),
    ):
        graph = helper.make_graph(
            [helper.make_node(op_type, ["x", "g"], ["y"])], "graph", [x], [y],
            [helper.make_tensor("g", TensorProto.FLOAT, (8,), GAMMA)],
        )  # fmt: skip
        opsets = [helper.make_opsetid("", opset)]
        model = tensorplug_onnx.load(helper.make_model(graph, opset_imports=opsets, ir_version=8))
        check([model(X)["y"].numpy()], [expected])


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "error", "message"),
    [
        ("MatMulNBits", [ROWS, A_8, CODE_SCALES], {"K": 40, "N": 6, "bits": 3, "block_size": 16},
         UnsupportedError, "3 bits: there are those of 2, 4 and 8"),
        ("Attention", [X, WEIGHTS], {"num_heads": 2, "do_rotary": 1},
         UnsupportedError, "do_rotary: there is no rule"),
        ("FusedConv", [IMAGES, FILTERS], {"activation": "Sinus"},
         NodeError, "there is no activation 'Sinus'"),
        ("QLinearConcat", [f(1), u(0), A, f(1)], {"axis": 0},
         NodeError, "2 inputs are no triples"),
    ],
)  # fmt: skip
def test_what_there_is_no_rule_for(op_type, inputs, attributes, error, message):
    with pytest.raises(error, match=message):
        outputs_of("called", op_type, inputs, attributes, domain=MICROSOFT)
