"""Branches and loops: eager, compiled, differentiated; older versions; errors."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import tensorplug as tp
import tensorplug_onnx
from tensorplug_onnx import NodeError, ValueNeededError

F, N, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X = np.array([1.0, -2.0, 3.0], np.float32)


def info(name, kind=F, shape=(3,)):
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name, value):
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.array(value)))


def load(nodes, inputs, outputs, opset=21, constants=()):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(constants))
    opsets = [helper.make_opsetid("", opset)]
    return tensorplug_onnx.load(helper.make_model(graph, opset_imports=opsets, ir_version=10))


def branches(then_nodes, then_output, else_nodes, else_output):
    return {
        "then_branch": helper.make_graph(then_nodes, "then", [], [then_output]),
        "else_branch": helper.make_graph(else_nodes, "else", [], [else_output]),
    }


def choice(condition_shape=()):
    """Return a model of ``2 * x if c else x * x``; both branches define the same name."""
    chosen = helper.make_node("If", ["c"], ["y"], **branches(
        [helper.make_node("Add", ["x", "x"], ["t"])], info("t"),
        [helper.make_node("Mul", ["x", "x"], ["t"])], info("t"),
    ))  # fmt: skip
    return load([chosen], [info("x"), info("c", B, condition_shape)], [info("y")])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("value", [False, True])
def test_if(compiled, shape, value):
    model = choice(shape)
    model = model.compile() if compiled else model
    found = model(X, np.full(shape, value))["y"]
    assert (found.dtype, found.shape) == (tp.float32, (3,))
    np.testing.assert_array_equal(found.numpy(), 2 * X if value else X * X)


def test_if_of_several_conditions_is_an_error():
    model = choice((2,))
    with pytest.raises(NodeError, match="If"):
        model(X, np.array([True, True]))


@pytest.mark.parametrize("value", [False, True])
def test_gradient_of_a_branch(value):
    model = choice()
    run = tp.compile(tp.grad(lambda x, c: tp.sum(model.apply({}, {"x": x, "c": c})["y"])))
    expected = np.full(3, 2, np.float32) if value else 2 * X
    for function in (tp.grad(lambda x: tp.sum(model(x, np.array(value))["y"])),):
        np.testing.assert_array_equal(function(tp.asarray(X)).numpy(), expected)
    np.testing.assert_array_equal(run(tp.asarray(X), tp.asarray(value)).numpy(), expected)


def test_branches_of_other_shapes_are_chosen():
    chosen = helper.make_node("If", ["c"], ["y"], **branches(
        [helper.make_node("Identity", ["x"], ["t"])], info("t"),
        [helper.make_node("ReduceSum", ["x"], ["e"])], info("e", F, (1,)),
    ))  # fmt: skip
    model = load([chosen], [info("x"), info("c", B, ())], [info("y", F, None)])
    for run in (model, model.compile()):
        for value, shape in ((False, (1,)), (True, (3,)), (False, (1,))):
            assert run(X, np.array(value))["y"].shape == shape
    traced = tp.compile(lambda c: model.apply({}, {"x": tp.asarray(X), "c": c})["y"])
    with pytest.raises(ValueNeededError, match="same in all branches"):
        traced(tp.asarray(True))


def test_a_condition_that_shapes_decide_is_chosen_when_compiled():
    nodes = [
        helper.make_node("Size", ["x"], ["n"]),
        constant("four", np.int64(4)),
        helper.make_node("Less", ["n", "four"], ["c"]),
        helper.make_node("If", ["c"], ["y"], **branches(
            [helper.make_node("Identity", ["x"], ["t"])], info("t"),
            [helper.make_node("ReduceSum", ["x"], ["e"])], info("e", F, (1,)),
        )),
    ]  # fmt: skip
    model = load(nodes, [info("x", F, ("n",))], [info("y", F, None)]).compile()
    assert model(X)["y"].shape == (3,)
    assert model(np.ones(5, np.float32))["y"].tolist() == [5.0]


# Loops ------------------------------------------------------------------------------------------


def powers(trips, *, stacks=True, condition=True, limit=None):
    """Return a model of a loop that multiplies v by x, starting from v = 1.

    ``trips``: a number, or None for an input. ``limit``: the loop goes on while max(v) is below.
    """
    body_nodes = [helper.make_node("Mul", ["v", "x"], ["next"])]
    if limit is None:
        body_nodes.append(helper.make_node("Identity", ["going"], ["still"]))
    else:
        body_nodes += [
            constant("limit", np.float32(limit)),
            helper.make_node("ReduceMax", ["next"], ["most"], keepdims=0),
            helper.make_node("Less", ["most", "limit"], ["still"]),
        ]
    outputs = [info("still", B, ()), info("next")]
    if stacks:
        body_nodes.append(helper.make_node("Add", ["next", "next"], ["twice"]))
        outputs.append(info("twice"))
    body = helper.make_graph(
        body_nodes, "body", [info("i", N, ()), info("going", B, ()), info("v")], outputs
    )
    loop = helper.make_node(
        "Loop", ["m", "c" if condition else "", "one"], ["y", *["rows"] * stacks], body=body
    )
    nodes = [constant("one", np.ones(3, np.float32)), constant("c", True), loop]
    inputs = [info("x")]
    if trips is None:
        inputs.append(info("m", N, ()))
    else:
        nodes.insert(0, constant("m", np.int64(trips)))
    rows = [info("rows", F, (None, 3))] * stacks
    return load(nodes, inputs, [info("y"), *rows])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("condition", [False, True])
@pytest.mark.parametrize("trips", [0, 1, 5, 16, 17, 40])
def test_loop_of_a_known_number_of_steps(compiled, condition, trips):
    model = powers(trips, condition=condition)
    found = (model.compile() if compiled else model)(X / 3)
    steps = np.cumprod(np.tile(X / 3, (trips, 1)), axis=0)
    assert found["y"].shape == (3,)
    assert found["rows"].shape == (trips, 3)
    assert found["rows"].dtype == tp.float32
    np.testing.assert_allclose(found["y"].numpy(), (X / 3) ** trips, rtol=1e-5)
    np.testing.assert_allclose(found["rows"].numpy(), 2 * steps, rtol=1e-5)


def test_the_program_of_a_long_loop_does_not_grow(monkeypatch):
    calls, multiply = [], tp.multiply

    def counted(*inputs):
        calls.append(inputs)
        return multiply(*inputs)

    monkeypatch.setattr(tp, "multiply", counted)
    model = powers(1000).compile()
    assert model(np.ones(3, np.float32))["rows"].shape == (1000, 3)
    assert 0 < len(calls) < 50


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("trips", "steps"), [(0, 0), (2, 2), (100, 7)])
def test_loop_whose_number_of_steps_is_an_input(compiled, trips, steps):
    model = powers(None, stacks=False, limit=100.0)
    model = model.compile() if compiled else model
    found = model(np.array([2.0, 1.0, 0.5], np.float32), np.array(trips))["y"]
    np.testing.assert_array_equal(found.numpy(), np.array([2.0, 1.0, 0.5]) ** steps)


def test_results_that_inputs_count_are_refused_when_compiled():
    model = powers(None, limit=100.0)
    assert model(np.full(3, 2.0, np.float32), np.array(50))["rows"].shape == (7, 3)
    with pytest.raises(ValueNeededError, match="Loop"):
        model.compile()(X, np.array(3))


@pytest.mark.parametrize("trips", [3, 20])
@pytest.mark.parametrize("limit", [None, 1e9])
def test_gradient_of_a_loop(trips, limit):
    model = powers(trips, stacks=False, limit=limit)
    expected = trips * (X / 4) ** (trips - 1)

    def total(x):
        return tp.sum(model.apply({}, {"x": x})["y"])

    for function in (tp.grad(total), tp.compile(tp.grad(total))):
        found = function(tp.asarray(X / 4)).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_carried_values_of_other_shapes():
    body = helper.make_graph(
        [
            helper.make_node("Concat", ["v", "v"], ["next"], axis=0),
            helper.make_node("Identity", ["going"], ["still"]),
        ],
        "body",
        [info("i", N, ()), info("going", B, ()), info("v", F, (None,))],
        [info("still", B, ()), info("next", F, (None,))],
    )
    loop = helper.make_node("Loop", ["m", "", "x"], ["y"], body=body)
    model = load([loop], [info("m", N, ()), info("x")], [info("y", F, (None,))])
    np.testing.assert_array_equal(model(np.array(3), X)["y"].numpy(), np.tile(X, 8))
    with pytest.raises(ValueNeededError, match="same in all"):
        model.compile()(np.array(3), X)


def test_shapes_that_a_loop_computes_are_known_when_compiled():
    """The number of the step cuts a tensor: each step has another shape."""
    body = helper.make_graph(
        [
            constant("zero", np.array([0])),
            constant("one", np.array([1])),
            helper.make_node("Reshape", ["i", "one"], ["at"]),
            helper.make_node("Slice", ["x", "zero", "at"], ["part"]),
            helper.make_node("ReduceSum", ["part"], ["sum"]),
            helper.make_node("Add", ["v", "sum"], ["next"]),
            helper.make_node("Identity", ["going"], ["still"]),
        ],
        "body",
        [info("i", N, ()), info("going", B, ()), info("v", F, (1,))],
        [info("still", B, ()), info("next", F, (1,))],
    )
    nodes = [
        constant("m", np.int64(30)),
        constant("start", np.zeros(1, np.float32)),
        helper.make_node("Loop", ["m", "", "start"], ["y"], body=body),
    ]
    model = load(nodes, [info("x", F, (32,))], [info("y", F, (1,))])
    x = np.arange(32, dtype=np.float32)
    expected = sum(x[:at].sum() for at in range(30))
    for run in (model, model.compile()):
        assert run(x)["y"].tolist() == [expected]


# Scan -------------------------------------------------------------------------------------------


def scanned(opset, inputs, **attributes):
    """Return a model that adds slices up, and returns the sums on the way."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["s", "slice"], ["sum"]),
            helper.make_node("Identity", ["sum"], ["row"]),
        ],
        "body",
        [info("s", F, (2,)), info("slice", F, (2,))],
        [info("sum", F, (2,)), info("row", F, (2,))],
    )
    names = [one.name if one else "" for one in inputs]
    scan = helper.make_node(
        "Scan", names, ["last", "rows"], body=body, num_scan_inputs=1, **attributes
    )
    outputs = [info("last", F, None), info("rows", F, None)]
    return load([scan], [one for one in inputs if one], outputs, opset)


DIRECTIONS = [(0, 0), (0, 1), (1, 0), (1, 1)]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("of_input", "of_output"), DIRECTIONS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scan(compiled, of_input, of_output, axis):
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    placed = x if axis == 0 else x.T
    model = scanned(
        9, [info("s", F, (2,)), info("x", F, placed.shape)], scan_input_axes=[axis],
        scan_output_axes=[axis], scan_input_directions=[of_input],
        scan_output_directions=[of_output],
    )  # fmt: skip
    found = (model.compile() if compiled else model)(np.ones(2, np.float32), placed.copy())
    sums = 1 + np.cumsum(x[::-1] if of_input else x, axis=0)
    rows = sums[::-1] if of_output else sums
    np.testing.assert_array_equal(found["last"].numpy(), sums[-1])
    np.testing.assert_array_equal(found["rows"].numpy(), rows if axis == 0 else rows.T)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("backward", [0, 1])
def test_scan_of_version_8(compiled, backward):
    """It has a batch in front, and a length for each example."""
    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    lengths = np.array([3, 2])
    shapes = [info("s", F, (2, 2)), info("x", F, (2, 3, 2))]
    start = np.ones((2, 2), np.float32)
    model = scanned(8, [None, *shapes], directions=[backward])
    found = (model.compile() if compiled else model)(start, x)
    sums = 1 + np.cumsum(x[:, ::-1] if backward else x, axis=1)
    np.testing.assert_array_equal(found["last"].numpy(), sums[:, -1])
    np.testing.assert_array_equal(found["rows"].numpy(), sums)
    if compiled:
        return
    model = scanned(8, [info("n", N, (2,)), *shapes], directions=[backward])
    found = model(lengths, start, x)
    for at, length in enumerate(lengths):
        own = x[at, :length][::-1] if backward else x[at, :length]
        own = 1 + np.cumsum(own, axis=0)
        np.testing.assert_array_equal(found["last"].numpy()[at], own[-1])
        np.testing.assert_array_equal(found["rows"].numpy()[at, :length], own)
        assert not found["rows"].numpy()[at, length:].any()


def test_gradient_of_a_scan():
    model = scanned(9, [info("s", F, (2,)), info("x", F, (3, 2))])

    def total(x):
        return tp.sum(model.apply({}, {"s": tp.zeros(2), "x": x})["rows"])

    expected = np.array([[3, 3], [2, 2], [1, 1]], np.float32)  # in how many sums each takes part
    for function in (tp.grad(total), tp.compile(tp.grad(total))):
        np.testing.assert_array_equal(function(tp.ones((3, 2))).numpy(), expected)


def test_scan_of_text():
    body = helper.make_graph(
        [helper.make_node("StringConcat", ["s", "t"], ["u"])], "body",
        [info("s", TensorProto.STRING, ()), info("t", TensorProto.STRING, ())],
        [info("u", TensorProto.STRING, ())],
    )  # fmt: skip
    scan = helper.make_node("Scan", ["s", "x"], ["y"], body=body, num_scan_inputs=1)
    words = numpy_helper.from_array(np.array(["a", "b", "c"], object), "x")
    start = numpy_helper.from_array(np.array("", object), "s")
    model = load([scan], [], [info("y", TensorProto.STRING, ())], 21, [words, start])
    assert str(model()["y"].numpy()) == "abc"


def test_an_inner_graph_may_use_a_name_again():
    """``t`` of the graph around is used, then defined anew, in the branch alone."""
    inner = [
        helper.make_node("Neg", ["x"], ["u"]),
        helper.make_node("Add", ["u", "t"], ["v"]),
    ]
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["t"]),
        helper.make_node("If", ["c"], ["r"], **branches(inner, info("v"), inner, info("v"))),
        helper.make_node("Add", ["r", "t"], ["y"]),
    ]
    model = load(nodes, [info("x"), info("c", B, ())], [info("y")])
    for run in (model, model.compile()):
        np.testing.assert_array_equal(run(X, np.array(True))["y"].numpy(), 2 * X * X - X)
