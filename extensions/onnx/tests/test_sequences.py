"""Sequences and optionals: positions, errors, compiled models."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import tensorplug as tp
import tensorplug_onnx
from tensorplug_onnx import NodeError

X = np.arange(5, dtype=np.float32)


def load(nodes, outputs=("y",), opset=21, **constants):
    graph = helper.make_graph(
        nodes, "graph", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n",))],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(np.array(value), name) for name, value in constants.items()],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return tensorplug_onnx.load(made)


def three(*nodes):
    """Return nodes that make a sequence ``s`` of x, -x and x * x, and more nodes."""
    return [
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node("Mul", ["x", "x"], ["q"]),
        helper.make_node("SequenceConstruct", ["x", "n", "q"], ["s"]),
        *nodes,
    ]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("position", range(-3, 3))
def test_at(compiled, position):
    model = load(three(helper.make_node("SequenceAt", ["s", "p"], ["y"])), p=position)
    found = (model.compile() if compiled else model)(X)["y"]
    np.testing.assert_array_equal(found.numpy(), [X, -X, X * X][position])


CHANGED = {
    ("SequenceErase", -3): "nq", ("SequenceErase", 2): "xn", ("SequenceErase", None): "xn",
    ("SequenceInsert", -3): "qxnq", ("SequenceInsert", 3): "xnqq", ("SequenceInsert", -1): "xnqq",
    ("SequenceInsert", 0): "qxnq", ("SequenceInsert", None): "xnqq",
}  # fmt: skip


@pytest.mark.parametrize(("op_type", "position"), CHANGED)
def test_erase_and_insert(op_type, position):
    given = ["s", *(["q"] if op_type == "SequenceInsert" else [])]
    constants = {} if position is None else {"p": position}
    node = helper.make_node(op_type, [*given, *constants], ["t"])
    length = helper.make_node("SequenceLength", ["t"], ["n2"])
    found = load(three(node, length), ["t", "n2"], **constants)(X)
    expected = [{"x": X, "n": -X, "q": X * X}[name] for name in CHANGED[op_type, position]]
    np.testing.assert_array_equal([one.numpy() for one in found["t"]], expected)
    assert (found["n2"].dtype, found["n2"].shape) == (tp.int64, ())
    assert int(found["n2"]) == len(expected)


@pytest.mark.parametrize(
    ("op_type", "position"),
    [("SequenceAt", 3), ("SequenceAt", -4), ("SequenceErase", 3), ("SequenceInsert", 4),
     ("SequenceInsert", -4)],
)  # fmt: skip
def test_positions_out_of_range(op_type, position):
    given = ["s", *(["q"] if op_type == "SequenceInsert" else []), "p"]
    model = load(three(helper.make_node(op_type, given, ["y"])), p=position)
    with pytest.raises(NodeError, match=rf"position {position} is not in a sequence of 3"):
        model(X)


def test_a_sequence_has_one_dtype():
    node = helper.make_node("SequenceInsert", ["s", "i"], ["t"])
    with pytest.raises(NodeError, match="sequence of float32 takes no int64"):
        load(three(node), ["t"], i=np.array([1]))(X)


SPLIT = {
    "each": (None, {}, [[0], [1], [2], [3], [4]]),
    "each without its axis": (None, {"keepdims": 0}, [0, 1, 2, 3, 4]),
    "size": (2, {}, [[0, 1], [2, 3], [4]]),
    "size, axis kept": (2, {"keepdims": 0}, [[0, 1], [2, 3], [4]]),
    "sizes": ([3, 0, 2], {"axis": -1}, [[0, 1, 2], [], [3, 4]]),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("case", SPLIT)
def test_split(compiled, case):
    sizes, attributes, expected = SPLIT[case]
    constants = {} if sizes is None else {"sizes": sizes}
    node = helper.make_node("SplitToSequence", ["x", *constants], ["t"], **attributes)
    model = load([node], ["t"], **constants)
    found = (model.compile() if compiled else model)(X)["t"]
    assert [one.tolist() for one in found] == expected


@pytest.mark.parametrize("sizes", [0, -1, [2, 2], [6, -1]])
def test_parts_that_do_not_fit(sizes):
    node = helper.make_node("SplitToSequence", ["x", "sizes"], ["t"])
    with pytest.raises(NodeError, match="split"):
        load([node], ["t"], sizes=sizes)(X)


@pytest.mark.parametrize("new_axis", [0, 1])
@pytest.mark.parametrize("axis", [0, -1])
def test_concatenation_and_its_gradient(new_axis, axis):
    node = helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=axis, new_axis=new_axis)
    model = load(three(node))
    parts = [X, -X, X * X]
    expected = np.stack(parts, axis) if new_axis else np.concatenate(parts, axis)
    np.testing.assert_array_equal(model(X)["y"].numpy(), expected)
    gradient = tp.grad(lambda x: tp.sum(model.apply({}, {"x": x})["y"]))(tp.asarray(X))
    np.testing.assert_array_equal(gradient.numpy(), 2 * X)


def test_an_empty_sequence():
    empty = helper.make_node("SequenceEmpty", [], ["e"])
    joined = helper.make_node("ConcatFromSequence", ["e"], ["y"], axis=0)
    with pytest.raises(NodeError, match="without tensors"):
        load([empty, joined])(X)
    assert load([empty], ["e"])(X) == {"e": []}


def test_an_optional_without_a_value():
    nodes = [
        helper.make_node("Optional", [], ["o"], type=helper.make_tensor_type_proto(1, None)),
        helper.make_node("OptionalHasElement", ["o"], ["y"]),
    ]
    assert load(nodes)(X)["y"].tolist() is False
    nodes.append(helper.make_node("OptionalGetElement", ["o"], ["z"]))
    with pytest.raises(NodeError, match="no value"):
        load(nodes, ["z"])(X)
