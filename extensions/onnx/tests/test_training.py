"""Optimizers' steps and gradients as nodes of a model."""

from __future__ import annotations

import math

import numpy as np
import pytest
from onnx import TensorProto, helper

import tensorplug as tp
import tensorplug_onnx
from tensorplug_onnx import NodeError

DOMAIN = "ai.onnx.preview.training"
X = np.array([[1.0, -2.0], [0.5, 3.0]], np.float32)
Y = np.array([0.5, 4.0, -1.0], np.float32)


def load(nodes, inputs, outputs, constants=()):
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in inputs.items()
    ]
    found = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph(nodes, "graph", infos, found, list(constants))
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(DOMAIN, 1)]
    return tensorplug_onnx.load(helper.make_model(graph, opset_imports=opsets))


def adagrad(rate, step, x, gradient, squares):
    gradient = gradient + 0.5 * x
    squares = squares + gradient**2
    return x - rate / (1 + 0.25 * step) * gradient / (np.sqrt(squares) + 0.125), squares


def adam(rate, step, x, gradient, mean, squares):
    gradient = gradient + 0.5 * x
    mean = 0.75 * mean + 0.25 * gradient
    squares = 0.875 * squares + 0.125 * gradient**2
    if step > 0:
        rate = rate * math.sqrt(1 - 0.875**step) / (1 - 0.75**step)
    return 0.9375 * (x - rate * mean / (np.sqrt(squares) + 0.125)), mean, squares


def momentum(rate, step, x, gradient, velocity):
    gradient = gradient + 0.5 * x
    velocity = 0.75 * velocity + (0.875 if step else 1) * gradient
    return x - rate * velocity, velocity


def nesterov(rate, step, x, gradient, velocity):
    gradient = gradient + 0.5 * x
    velocity = 0.75 * velocity + (0.875 if step else 1) * gradient
    return x - rate * (gradient + 0.75 * velocity), velocity


DECAY = {"norm_coefficient": 0.5}
MOMENTUM = {**DECAY, "alpha": 0.75, "beta": 0.875}

# Operator, attributes, formula, and the number of states.
STEPS = {
    "Adagrad": ("Adagrad", {**DECAY, "decay_factor": 0.25, "epsilon": 0.125}, adagrad, 1),
    "Adam": (
        "Adam", {**MOMENTUM, "epsilon": 0.125, "norm_coefficient_post": 0.0625}, adam, 2),
    "Momentum": ("Momentum", {**MOMENTUM, "mode": "standard"}, momentum, 1),
    "Nesterov": ("Momentum", {**MOMENTUM, "mode": "nesterov"}, nesterov, 1),
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("step", [0, 1, 7])
@pytest.mark.parametrize("name", STEPS)
def test_steps(name, step, compiled):
    operator, attributes, formula, count = STEPS[name]
    roles = 2 + count
    tensors = [(at + 1) * array for at in range(roles) for array in (X, Y)]
    tensors[4:] = map(np.abs, tensors[4:])
    inputs = {"rate": np.array(0.25, np.float32), "step": np.array(step)}
    inputs |= {f"x{at}": array for at, array in enumerate(tensors)}
    outputs = [f"y{at}" for at in range(2 * (1 + count))]
    node = helper.make_node(operator, list(inputs), outputs, domain=DOMAIN, **attributes)
    model = load([node], inputs, outputs)
    found = list((model.compile() if compiled else model)(inputs).values())
    for first in range(2):
        given = [array.astype(np.float64) for array in tensors[first::2]]
        expected = formula(0.25, step, *given)
        for one, wanted in zip(found[first::2], expected, strict=True):
            assert str(one.dtype) == "float32"
            assert one.shape == wanted.shape
            np.testing.assert_allclose(one.numpy(), wanted, rtol=1e-6)


def gradient(xs, y, outputs, zs=(), inputs=None):
    more = {"zs": list(zs)} if zs else {}
    return helper.make_node(
        "Gradient", inputs or [*xs, *zs], outputs, domain=DOMAIN, xs=list(xs), y=y, **more
    )


def node(op_type, inputs, output):
    return helper.make_node(op_type, inputs, [output])


THREE = np.array([1.0, -2.0, 3.0], np.float32)
TWO = np.array([2.0, 0.5, -1.0], np.float32)

# Nodes, by name, with the gradients that they put out for a = THREE, b = TWO.
GRADIENTS = {
    "of a product": (
        [node("Mul", ["a", "b"], "y"), gradient("ab", "y", ["da", "db"])],
        {"da": TWO, "db": THREE},
    ),
    "with b held": (
        [node("Mul", ["a", "b"], "y"), gradient("a", "y", ["da"], zs="b")],
        {"da": TWO},
    ),
    "of what is between": (
        [
            node("Exp", ["a"], "h"),
            node("Mul", ["h", "b"], "y"),
            gradient("h", "y", ["dh"], zs="b"),
        ],
        {"dh": TWO},
    ),
    "at another place": (
        [
            node("Mul", ["a", "a"], "y"),
            gradient("a", "y", ["da"], inputs=["b"]),
        ],
        {"da": 2 * TWO},
    ),
    "of a gradient": (
        [
            node("Mul", ["a", "a"], "square"),
            node("Mul", ["square", "a"], "y"),
            gradient("a", "y", ["da"]),
            gradient("a", "da", ["dda"]),
        ],
        {"da": 3 * THREE**2, "dda": 6 * THREE},
    ),
    "of what does not matter": (
        [node("Mul", ["a", "a"], "y"), gradient("ab", "y", ["da", "db"])],
        {"da": 2 * THREE, "db": 0 * TWO},
    ),
    "left out": (
        [node("Mul", ["a", "b"], "y"), gradient("ab", "y", ["", "db"])],
        {"db": THREE},
    ),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name, compiled):
    nodes, expected = GRADIENTS[name]
    inputs = {"a": THREE, "b": TWO}
    model = load(nodes, inputs, list(expected))
    found = (model.compile() if compiled else model)(inputs)
    for key, wanted in expected.items():
        assert str(found[key].dtype) == "float32"
        assert found[key].shape == wanted.shape
        np.testing.assert_allclose(found[key].numpy(), wanted, rtol=1e-6)


def test_gradients_see_the_parameters_of_the_call():
    weight = helper.make_tensor("w", TensorProto.FLOAT, [3], TWO)
    nodes = [node("Mul", ["a", "w"], "y"), gradient("a", "y", ["da"])]
    model = load(nodes, {"a": THREE}, ["da"], [weight])
    found = model.apply({"w": tp.asarray(5 * TWO)}, {"a": tp.asarray(THREE)})
    np.testing.assert_allclose(found["da"].numpy(), 5 * TWO)


# What must not run: nodes, and what the message says.
WRONG = {
    "a variable that is not named": (
        [node("Mul", ["a", "b"], "y"), gradient("a", "y", ["d"])], "'b', which is not in"),
    "fewer inputs than names": (
        [node("Mul", ["a", "b"], "y"), gradient("ab", "y", ["d"], inputs=["a"])], "1 inputs"),
    "a mode": (
        [helper.make_node("Momentum", ["r", "t", "a", "a", "a"], ["d", "v"], domain=DOMAIN,
                          **MOMENTUM, mode="fast")], "'fast'"),
    "a tensor without a gradient": (
        [helper.make_node("Adagrad", ["r", "t", "a", "a"], ["d"], domain=DOMAIN)], "2 inputs"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_the_node(name):
    nodes, message = WRONG[name]
    inputs = {"a": THREE, "b": TWO, "r": np.array(1, np.float32), "t": np.array(1)}
    with pytest.raises(NodeError, match=rf"{nodes[-1].op_type}.*{message}"):
        load(nodes, inputs, ["d"])(inputs)
