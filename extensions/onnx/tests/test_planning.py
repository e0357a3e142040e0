"""What is worked out once: constants on a device, weights in another order, calls of rules."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import tensorplug as tp
import tensorplug_onnx
from tensorplug_onnx import NodeError, UnsupportedError, planning, rules
from tensorplug_onnx.operators import recurrent

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def copies(monkeypatch):
    """Return the list of constants that are copied to a device from now on."""
    found = []

    def seen(value):
        found.append(value)
        return real(value)

    real = planning.as_tensor
    monkeypatch.setattr(planning, "as_tensor", seen)
    return found


def constant(array):
    return helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(array))


PLACES = np.array([1, 0, 1], np.int64)
CONSTANTS = {
    "initializer": ([], {"c": PLACES}),
    "Constant": ([constant(PLACES)], {}),
    "Constant of numbers": ([helper.make_node("Constant", [], ["c"], value_ints=[1, 0, 1])], {}),
}


@pytest.mark.parametrize("kind", CONSTANTS)
def test_a_constant_is_copied_to_a_device_once(make, copies, kind):
    nodes, constants = CONSTANTS[kind]
    gather = helper.make_node("Gather", ["x", "c"], ["y"])
    model = tensorplug_onnx.load(make([*nodes, gather], {"x": (2, 3)}, ["y"], constants))
    for device in ("cpu", "minimal", "cpu", "minimal"):
        with tp.use_backend(device):
            found = model(X)["y"]
        assert str(found.device) == device
        np.testing.assert_array_equal(found.numpy(), X[PLACES])
    assert [one.tolist() for one in copies] == 2 * [PLACES.tolist()]


def test_a_default_that_is_given_is_not_the_constant(make, copies):
    proto = make(
        [helper.make_node("Gather", ["x", "c"], ["y"])], {"x": (2, 3)}, ["y"], {"c": PLACES}
    )
    proto.graph.input.append(helper.make_tensor_value_info("c", TensorProto.INT64, [3]))
    model = tensorplug_onnx.load(proto)
    for places in (PLACES[::-1].copy(), PLACES, 1 - PLACES):
        for found in (model(X, c=places), model.apply({}, {"x": tp.asarray(X), "c": places})):
            np.testing.assert_array_equal(found["y"].numpy(), X[places])
    assert not copies
    np.testing.assert_array_equal(model(X)["y"].numpy(), X[PLACES])


def test_a_compiled_model_does_not_copy_the_parameters(make, copies):
    node = helper.make_node("Mul", ["x", "w"], ["y"])
    model = tensorplug_onnx.load(make([node], {"x": (2, 3)}, ["y"], {"w": X}))
    compiled = model.compile()
    np.testing.assert_array_equal(compiled(X)["y"].numpy(), X * X)
    assert not copies
    with tp.use_backend("minimal"):
        np.testing.assert_array_equal(compiled(X)["y"].numpy(), X * X)
    assert len(copies) == 1


# Weights in another order ------------------------------------------------------------------------

RNG = np.random.default_rng(8)
UNITS, FEATURES = 3, 2


def layer(op_type, *, bias=True, **attributes):
    gates = {"LSTM": 4, "GRU": 3}[op_type] * UNITS
    weights = {
        "w": RNG.normal(size=(1, gates, FEATURES)).astype(np.float32),
        "r": RNG.normal(size=(1, gates, UNITS)).astype(np.float32),
    }
    if bias:
        weights["b"] = RNG.normal(size=(1, 2 * gates)).astype(np.float32)
    node = helper.make_node(op_type, ["x", *weights], ["y"], hidden_size=UNITS, **attributes)
    return node, weights


@pytest.fixture
def orders(monkeypatch):
    """Return the list of weights that are reordered from now on."""
    found = []

    def seen(weights, order):
        found.append(weights)
        return real(weights, order)

    real = recurrent._reordered
    monkeypatch.setattr(recurrent, "_reordered", seen)
    return found


LAYERS = {
    "LSTM": {"op_type": "LSTM"},
    "GRU": {"op_type": "GRU", "linear_before_reset": 1},
    "no bias": {"op_type": "LSTM", "bias": False},
}
STEPS = RNG.normal(size=(4, 2, FEATURES)).astype(np.float32)


@pytest.mark.parametrize("case", LAYERS)
def test_weights_are_reordered_once(make, orders, case):
    node, weights = layer(**LAYERS[case])
    model = tensorplug_onnx.load(make([node], {"x": STEPS.shape}, ["y"], weights))
    first = model(STEPS)["y"].numpy()
    once = len(orders)
    assert once >= 2
    np.testing.assert_array_equal(model(STEPS)["y"].numpy(), first)
    assert len(orders) == once
    moved = model.to("minimal")
    for _ in range(2):
        np.testing.assert_allclose(moved(STEPS)["y"].numpy(), first, rtol=1e-5, atol=1e-6)
    assert len(orders) == 2 * once


@pytest.mark.parametrize("case", LAYERS)
def test_weights_that_change_are_reordered_anew(make, case):
    node, weights = layer(**LAYERS[case])
    model = tensorplug_onnx.load(make([node], {"x": STEPS.shape}, ["y"], weights))
    x = tp.asarray(STEPS)

    def loss(parameters):
        return tp.sum(model.apply(parameters, {"x": x})["y"] ** 2)

    before = tp.grad(loss)(dict(model.parameters))
    assert not model._plans._prepared  # it would keep alive what the gradients need
    whole = model(x)["y"].numpy()
    after = tp.grad(loss)(dict(model.parameters))
    compiled = tp.compile(tp.grad(loss))(dict(model.parameters))
    for name in weights:
        np.testing.assert_array_equal(after[name].numpy(), before[name].numpy())
        np.testing.assert_allclose(
            compiled[name].numpy(), before[name].numpy(), rtol=1e-4, atol=1e-5
        )
        assert np.abs(before[name].numpy()).max() > 1e-3
    halved = {name: 0.5 * value for name, value in model.parameters.items()}
    others = tensorplug_onnx.load(
        make(
            [node], {"x": STEPS.shape}, ["y"],
            {name: (0.5 * array).astype(np.float32) for name, array in weights.items()},
        )
    )  # fmt: skip
    np.testing.assert_array_equal(
        model.apply(halved, {"x": x})["y"].numpy(), others(x)["y"].numpy()
    )
    np.testing.assert_array_equal(model(x)["y"].numpy(), whole)


# Errors ------------------------------------------------------------------------------------------


def failing(inner):
    """Return a model whose node ``outer`` runs the node ``inner`` in a branch."""
    branch = helper.make_graph([inner], "branch", [], [helper.make_empty_tensor_value_info("b")])
    node = helper.make_node(
        "If", ["flag"], ["y"], name="outer", then_branch=branch, else_branch=branch
    )
    graph = helper.make_graph(
        [node],
        "graph",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]),
            helper.make_tensor_value_info("flag", TensorProto.BOOL, []),
        ],
        [helper.make_empty_tensor_value_info("y")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


@pytest.mark.parametrize(
    ("inner", "error", "told"),
    [
        (
            helper.make_node("Concat", ["x", "flag"], ["b"], name="node of words", axis=0),
            NodeError,
            r"^node 'node of words' \(Concat, ai.onnx 20\) with float32\[2,3\], bool\[\]",
        ),
        (
            helper.make_node("LpPool", ["x"], ["b"], name="p", kernel_shape=[1], p=-1),
            NodeError,
            r"^node 'p' \(LpPool, ai.onnx 20\) with float32\[2,3\]: ",
        ),
        (
            helper.make_node("Constant", [], ["b"], name="c"),
            NodeError,
            r"^node 'c' \(Constant, ai.onnx 20\): 0 values",
        ),
    ],
    ids=["fails", "wrong attribute", "constant"],
)
def test_the_innermost_node_is_named_once(inner, error, told):
    model = tensorplug_onnx.load(failing(inner))
    with pytest.raises(error, match=told) as raised:
        model(X, np.array(True))
    assert raised.value.node.name == inner.name
    assert str(raised.value).count("node '") == 1 + inner.name.count("node '")
    assert "outer" not in str(raised.value)


def test_an_error_that_begins_like_the_name_of_a_node_is_named(make, monkeypatch):
    def unlucky(*_inputs, **_keywords):
        raise UnsupportedError("node of a tree: not supported")

    real = rules.lookup("Neg", "", 20)
    monkeypatch.setitem(rules._RULES, ("", "Neg"), [replace(real, function=unlucky)])
    model = tensorplug_onnx.load(
        make([helper.make_node("Neg", ["x"], ["y"])], {"x": (2, 3)}, ["y"])
    )
    with pytest.raises(UnsupportedError, match=r"^node \(Neg, ai.onnx 20\): node of a tree"):
        model(X)


def test_errors_with_a_node_are_pickled(make):
    node = helper.make_node("Reshape", ["x", "s"], ["y"])
    model = tensorplug_onnx.load(make([node], {"x": (2, 3)}, ["y"], {"s": np.array([4])}))
    with pytest.raises(NodeError) as raised:
        model(X)
    again = pickle.loads(pickle.dumps(raised.value))
    assert str(again) == str(raised.value)
    assert again.node.op_type == "Reshape"
