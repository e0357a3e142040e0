"""Optimized graphs give the same with fewer nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from onnx import helper

import tensorplug_onnx
from tensorplug_onnx.executing import Plans, run_graph
from tensorplug_onnx.optimizing import optimized
from tensorplug_onnx.values import as_host

RNG = np.random.default_rng(5)


def drawn(*shape):
    return RNG.uniform(0.5, 1.5, shape).astype(np.float32)


X = drawn(2, 4, 5, 5)
NORM = ["scale", "offset", "mean", "variance"]
STATISTICS = {name: drawn(6) for name in NORM}
CONV = {"w": drawn(6, 4, 3, 3), "b": drawn(6)}


def node(op_type, inputs, output, **attributes):
    return helper.make_node(op_type, inputs, [output], **attributes)


NORMALIZED = node("BatchNormalization", ["c", *NORM], "y", epsilon=0.25)
# Nodes, constants beside the statistics, and the op types that are left.
GRAPHS = {
    "bias": ([node("Conv", ["x", "w", "b"], "c"), NORMALIZED], CONV, ["Conv"]),
    "no bias": ([node("Conv", ["x", "w"], "c"), NORMALIZED], CONV, ["Conv"]),
    "groups": (
        [node("Conv", ["x", "w"], "c", group=2), NORMALIZED],
        {"w": drawn(6, 2, 3, 3)},
        ["Conv"],
    ),
    "transposed": (
        [node("ConvTranspose", ["x", "w"], "c"), NORMALIZED],
        {"w": drawn(4, 6, 3, 3)},
        ["ConvTranspose"],
    ),
    "transposed in groups": (
        [node("ConvTranspose", ["x", "w"], "c", group=2), NORMALIZED],
        {"w": drawn(4, 3, 3, 3)},
        ["ConvTranspose", "BatchNormalization"],
    ),
    "used twice": (
        [
            node("Conv", ["x", "w"], "c"),
            node("BatchNormalization", ["c", *NORM], "n"),
            node("Add", ["c", "n"], "y"),
        ],
        CONV,
        ["Conv", "BatchNormalization", "Add"],
    ),
    "filter of an input": (
        [node("Conv", ["x", "x"], "c"), node("Neg", ["c"], "y")],
        {},
        ["Conv", "Neg"],
    ),
    "constants": (
        [
            node("Mul", ["p", "q"], "pq"),
            node("Neg", ["pq"], "constant"),
            node("Add", ["x", "constant"], "y"),
        ],
        {"p": drawn(5), "q": drawn(5)},
        ["Add"],
    ),
    "identities": (
        [
            node("Identity", ["x"], "i"),
            node("Dropout", ["i"], "d"),
            node("Neg", ["d"], "n"),
            node("Identity", ["n"], "y"),
        ],
        {},
        ["Neg", "Identity"],  # an output keeps its name
    ),
    "unused": ([node("Exp", ["x"], "z"), node("Neg", ["x"], "y")], {}, ["Neg"]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_optimized_graph_gives_the_same(make, name):
    nodes, constants, left = GRAPHS[name]
    model = tensorplug_onnx.load(make(nodes, {"x": X.shape}, ["y"], {**STATISTICS, **constants}))
    found = optimized(model.graph, {})
    assert [node.op_type for node in found.nodes] == left
    used = {name for node in found.nodes for name in node.inputs}
    assert set(found.initializers) <= used
    [value] = run_graph(found, {"x": X}, Plans())
    right = model(X)["y"].numpy()
    assert as_host(value).shape == right.shape
    np.testing.assert_allclose(as_host(value), right, rtol=2e-5, atol=1e-5)
    np.testing.assert_allclose(model.compile()(X)["y"].numpy(), right, rtol=2e-5, atol=1e-5)


def test_random_numbers_are_no_constants(make):
    nodes = [
        helper.make_node("RandomNormal", [], ["r"], shape=[5]),
        helper.make_node("Add", ["x", "r"], ["y"]),
    ]
    model = tensorplug_onnx.load(make(nodes, {"x": X.shape}, ["y"]))
    found = optimized(model.graph, {})
    assert [node.op_type for node in found.nodes] == ["RandomNormal", "Add"]


def test_parameters_take_the_place_of_initializers(make):
    nodes, constants, _ = GRAPHS["constants"]
    model = tensorplug_onnx.load(make(nodes, {"x": X.shape}, ["y"], constants))
    others = {name: 2 * array for name, array in constants.items()}
    changed = replace(
        model, parameters={name: array + array for name, array in model.parameters.items()}
    )
    np.testing.assert_allclose(
        changed.compile()(X)["y"].numpy(), X - others["p"] * others["q"], rtol=1e-6
    )
