"""Compiled models: inputs that decide shapes, sizes that share programs, devices."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import tensorplug as tp
import tensorplug_onnx
from tensorplug_onnx import NodeError, ValueNeededError
from tensorplug_onnx.shaping import shaping_inputs

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def info(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def of_integers(*names, rank=1):
    return {name: info(name, TensorProto.INT64, [None] * rank) for name in names}


def integers(*values):
    return np.array(values, np.int64)


def node(op_type, inputs, outputs="y", **attributes):
    return helper.make_node(op_type, inputs.split(), outputs.split(), **attributes)


ADD_ROW = helper.make_graph(
    [
        helper.make_node("Identity", ["going"], ["still"]),
        helper.make_node("Add", ["sum", "sum"], ["double"]),
        helper.make_node("Identity", ["double"], ["row"]),
    ],
    "body",
    [
        info("number", TensorProto.INT64, []),
        info("going", TensorProto.BOOL, []),
        info("sum", TensorProto.FLOAT, [4]),
    ],
    [
        info("still", TensorProto.BOOL, []),
        info("double", TensorProto.FLOAT, [4]),
        info("row", TensorProto.FLOAT, [4]),
    ],
)

# Nodes, inputs beside x, which of them decide shapes, and values of these with the results.
SHAPED = {
    "shape": (
        [node("Reshape", "x s")], of_integers("s"), {"s"},
        [({"s": integers(n, -1)}, X.reshape(n, -1)) for n in (2, 4, 6)],
    ),
    "computed shape": (
        [node("Neg", "m", "n"), node("Concat", "m n", "s", axis=0), node("Reshape", "x s")],
        of_integers("m"), {"m"},
        [({"m": integers(1)}, X.reshape(1, -1))],
    ),
    "repeats": (
        [node("Tile", "x r")], of_integers("r"), {"r"},
        [({"r": integers(1, n)}, np.tile(X, (1, n))) for n in (1, 3)],
    ),
    "k": (
        [node("TopK", "x k", "y places")], of_integers("k"), {"k"},
        [({"k": integers(n)}, np.sort(X)[:, ::-1][:, :n]) for n in (1, 3)],
    ),
    "axes": (
        [node("ReduceSum", "x a", keepdims=0)], of_integers("a"), {"a"},
        [({"a": integers(n)}, X.sum(n)) for n in (0, 1)],
    ),
    "bounds": (
        [node("Slice", "x b e")], of_integers("b", "e"), {"b", "e"},
        [({"b": integers(1), "e": integers(n)}, X[1:n]) for n in (2, 3)],
    ),
    "not data": (
        [node("Gather", "x places"), node("Shape", "places", "s")], of_integers("places"), set(),
        [({"places": integers(*n)}, X[list(n)]) for n in ((1, 1), (0, 2))],
    ),
    "a body": (
        [node("CenterCropPad", "x s")], of_integers("s"), {"s"},
        [({"s": integers(1, 2)}, X[1:2, 1:3])],
    ),
    "a body of one type": (
        [node("HannWindow", "n", "w", periodic=0), node("Add", "x w")],
        of_integers("n", rank=0), {"n"},
        [({"n": np.array(4)}, X + np.float32([0, 0.75, 0.75, 0]))],
    ),
}  # fmt: skip


@pytest.fixture
def shaped(make):
    def made(case):
        nodes, others, decide, calls = SHAPED[case]
        model = tensorplug_onnx.load(make(nodes, {"x": (3, 4), **others}, ["y"]))
        return model, decide, calls

    return made


@pytest.mark.parametrize("case", SHAPED)
def test_inputs_that_decide_shapes_are_static(shaped, case):
    model, decide, calls = shaped(case)
    assert shaping_inputs(model.graph) == decide
    compiled = model.compile()
    for values, expected in (*calls, *calls):
        given = {name: tp.asarray(value) for name, value in values.items()}
        found = compiled({"x": X, **given})["y"].numpy()
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_a_static_value_has_one_program(make):
    nodes = [node("Reshape", "x s", "r"), node("Relu", "r")]
    compiled = tensorplug_onnx.load(
        make(nodes, {"x": (3, 4), **of_integers("s")}, ["y"])
    ).compile()
    shapes = [(2, 6), (4, 3), (2, 6), (4, 3)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for shape in shapes:
            assert compiled(X, integers(*shape))["y"].shape == shape


def branch(weights):
    """A graph of one product of x with a matrix of ones."""
    return helper.make_graph(
        [node("MatMul", f"x {weights}", "y")],
        weights,
        [],
        [info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.ones((len(weights), 1), np.float32), weights)],
    )


def test_a_branch_for_other_shapes_is_not_traced(make):
    """As in a model for two sampling rates, whose windows have different lengths."""
    flag = {"flag": info("flag", TensorProto.BOOL, [])}
    choice = node("If", "flag", then_branch=branch("four"), else_branch=branch("fives"))
    model = tensorplug_onnx.load(make([choice], {"x": (3, None), **flag}, ["y"]))
    compiled = model.compile()
    for flag, width in ((True, 4), (False, 5), (True, 4)):
        x = np.arange(3 * width, dtype=np.float32).reshape(3, width)
        found = compiled(x, np.array(flag))["y"].numpy()
        assert found.shape == (3, 1)
        np.testing.assert_array_equal(found, x.sum(1, keepdims=True))
    with pytest.raises(NodeError, match="MatMul"):
        compiled(X, np.array(False))


def test_a_loop_that_stacks_needs_its_number_of_steps(make):
    inputs = {
        "first": info("first", TensorProto.FLOAT, [4]),
        "n": info("n", TensorProto.INT64, []),
        "go": info("go", TensorProto.BOOL, []),
    }
    nodes = [helper.make_node("Loop", ["n", "go", "first"], ["last", "rows"], body=ADD_ROW)]
    model = tensorplug_onnx.load(make(nodes, inputs, ["rows"]))
    assert shaping_inputs(model.graph) == {"n", "go"}
    compiled = model.compile()
    for steps in (1, 3, 20):
        found = compiled(X[1], np.array(steps), np.array(1, np.bool))["rows"].numpy()
        expected = X[1] * 2.0 ** np.arange(1, steps + 1, dtype=np.float32)[:, None]
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)


def test_a_loop_of_unknown_steps_stays_one_program(make):
    inputs = {
        "first": info("first", TensorProto.FLOAT, [4]),
        "n": info("n", TensorProto.INT64, []),
        "go": info("go", TensorProto.BOOL, []),
    }
    body = helper.make_graph(ADD_ROW.node[:2], "body", ADD_ROW.input, ADD_ROW.output[:2])
    nodes = [helper.make_node("Loop", ["n", "go", "first"], ["last"], body=body)]
    model = tensorplug_onnx.load(make(nodes, inputs, ["last"]))
    assert shaping_inputs(model.graph) == set()
    compiled = model.compile()
    for steps in range(12):  # the ninth program of a function causes a warning
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = compiled(X[1], np.array(steps), np.array(1, np.bool))["last"].numpy()
        np.testing.assert_array_equal(found, X[1] * 2**steps)


def test_shapes_of_larger_inputs_are_refused(make):
    nodes = [
        node("ReduceMax", "m", "longest", keepdims=0),
        node("Reshape", "longest one", "count"),
        node("Reshape", "x count"),
    ]
    model = tensorplug_onnx.load(
        make(nodes, {"x": (3, 4), **of_integers("m", rank=2)}, ["y"], {"one": integers(1)})
    )
    given = {"x": X, "m": integers(12, 3).reshape(1, 2)}
    assert model(given)["y"].shape == (12,)
    with pytest.raises(ValueNeededError, match=r"node .*Reshape.* values of its inputs") as told:
        model.compile()(given)
    assert told.value.node.op_type == "Reshape"


def test_a_shape_of_a_traced_call_is_refused(make):
    model = tensorplug_onnx.load(
        make([node("Reshape", "x s")], {"x": (3, 4), **of_integers("s")}, ["y"])
    ).compile()
    whole = tp.compile(lambda s: model(X, s)["y"])
    with pytest.raises(ValueNeededError, match="input 's' decides shapes"):
        whole(tp.asarray(integers(4, 3)))


# Dynamic sizes -----------------------------------------------------------------------------------


@pytest.fixture
def attended(make):
    """Return a model that mixes the rows of each example, then asks for shapes."""
    rng = np.random.default_rng(3)
    weights = {
        "w": rng.normal(size=(4, 4)).astype(np.float32),
        "b": rng.normal(size=4).astype(np.float32),
        "first": integers(0),
        "flat": integers(-1),
        "last": integers(-1),
    }
    nodes = [
        node("MatMul", "x w", "k"),
        node("Transpose", "k", "kt", perm=[0, 2, 1]),
        node("MatMul", "x kt", "scores"),
        node("Softmax", "scores", "p", axis=-1),
        node("MatMul", "p x", "mixed"),
        node("Add", "mixed b", "added"),
        node("Shape", "added", "shape"),
        node("Gather", "shape first", "batch"),
        node("Concat", "batch flat", "size", axis=0),
        node("ReduceSum", "added last", "sums", keepdims=0),
        node("Reshape", "sums size", "rows"),
        node("ReduceMean", "rows", "y", keepdims=0),
    ]
    return tensorplug_onnx.load(make(nodes, {"x": ("N", "T", 4)}, ["y", "rows"], weights))


def rows(*shape):
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    "shapes",
    [
        [(17, 5), (18, 5), (20, 5), (23, 5), (24, 5)],
        [(2, 17), (2, 18), (2, 23)],
        [(17, 9), (18, 10), (20, 11), (24, 12)],
    ],
    ids=["batches", "lengths", "both"],
)
def test_sizes_that_change(attended, shapes):
    compiled = attended.compile()
    for shape in shapes:
        x = rows(*shape, 4)
        found = compiled(x)
        for name, expected in attended(x).items():
            assert found[name].type == expected.type
            np.testing.assert_allclose(found[name].numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)


def test_sizes_that_change_beside_static_inputs(make):
    inputs = {"x": ("N", 4), **of_integers("k")}
    nodes = [node("TopK", "x k", "largest places"), node("Neg", "largest")]
    compiled = tensorplug_onnx.load(make(nodes, inputs, ["y"])).compile()
    for size in (17, 18):
        x = rows(size, 4)
        for k in (1, 3):
            found = compiled(x, integers(k))["y"].numpy()
            assert found.shape == (size, k)
            np.testing.assert_array_equal(found, -np.sort(x)[:, ::-1][:, :k])


# Devices -----------------------------------------------------------------------------------------


def test_a_compiled_model_moves(attended):
    x = rows(2, 3, 4)
    expected = attended(x)["y"].numpy()
    for moved in (attended.compile().to("minimal"), attended.to("minimal").compile()):
        found = moved(x)["y"]
        assert str(found.device) == "minimal"
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)
