"""Functions, defaults, weights in other files, text, sequences: what models are made of."""

from __future__ import annotations

import io
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tensorplug as tp
import tensorplug_onnx
from tensorplug_onnx import InputError, ModelError, loading

X = np.array([1.0, -2.0, 3.0], np.float32)
TRUE = np.ones((), np.bool)
OWN = helper.make_opsetid("own", 1)


def info(name, shape=(3,), kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, initializers=(), *, opset=21, ir_version=10, **more):
    functions = more.pop("functions", ())
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(initializers), **more)
    opsets = [helper.make_opsetid("", opset), OWN]
    return helper.make_model(
        graph, opset_imports=opsets, functions=list(functions), ir_version=ir_version
    )


def run(made, *inputs):
    found = tensorplug_onnx.load(made)(*inputs)
    return next(iter(found.values())).numpy()


# Functions of the model -------------------------------------------------------------------------


def function(nodes, outputs=("b",), inputs=("a",), name="f", overload="", **more):
    made = helper.make_function(
        "own", name, list(inputs), list(outputs), nodes, [helper.make_opsetid("", 21), OWN], **more
    )
    made.overload = overload
    return made


def call(inputs=("x",), outputs=("y",), overload="", **attributes):
    node = helper.make_node("f", list(inputs), list(outputs), domain="own", **attributes)
    node.overload = overload
    return node


def elu():
    """Return a node whose attribute is that of the function around it."""
    node = helper.make_node("Elu", ["a"], ["b"])
    node.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    return node


def negative_and_outer(op_type="Add"):
    """Return nodes of which a branch takes names of the function, one like the caller's."""
    branch = helper.make_graph(
        [helper.make_node(op_type, ["a", "x"], ["t"])], "branch", [], [info("t", None)]
    )
    return [
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(TRUE)),
        helper.make_node("Neg", ["a"], ["x"]),
        helper.make_node("If", ["c"], ["b"], then_branch=branch, else_branch=branch),
    ]


NEG, ABS = (helper.make_node(op_type, ["a"], ["b"]) for op_type in ("Neg", "Abs"))
FUNCTIONS = {
    "one node": (call(), [function([NEG])], -X),
    "overload": (
        call(overload="two"), [function([NEG]), function([ABS], overload="two")], np.abs(X),
    ),
    "attribute of the call": (
        call(slope=3.0), [function([elu()], attributes=["slope"])],
        np.where(X > 0, X, 3 * np.expm1(X)),
    ),
    "attribute that the call leaves out": (
        call(), [function([elu()], attributes=["slope"])], np.where(X > 0, X, np.expm1(X)),
    ),
    "default of an attribute": (
        call(), [function([elu()], attribute_protos=[helper.make_attribute("slope", 2.0)])],
        np.where(X > 0, X, 2 * np.expm1(X)),
    ),
    "input that is an output": (call(), [function([NEG], outputs=("a",))], X),
    "output that the call leaves out": (
        call(outputs=("", "y")),
        [function([NEG, helper.make_node("Add", ["b", "b"], ["d"])], outputs=("b", "d"))], -2 * X,
    ),
    "input that the call leaves out": (
        call(), [function([helper.make_node("Clip", ["a", "low"], ["b"])], inputs=("a", "low"))],
        X,
    ),
    "names like the caller's": (call(), [function(negative_and_outer())], 0 * X),
    "function in a function": (
        call(),
        [
            function([
                helper.make_node("g", ["a"], ["t"], domain="own"),
                helper.make_node("g", ["t"], ["b"], domain="own"),
            ]),
            function([helper.make_node("Mul", ["a", "a"], ["b"])], name="g"),
        ], X**4,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FUNCTIONS)
def test_functions(case):
    node, functions, expected = FUNCTIONS[case]
    made = model([node], [info("x")], [info("y")], functions=functions)
    np.testing.assert_allclose(run(made, X), expected, rtol=1e-6)


def test_a_function_in_a_branch():
    branch = helper.make_graph([call(("x",), ("t",))], "branch", [], [info("t")])
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)]
    made = model(
        nodes,
        [info("x"), info("c", (), TensorProto.BOOL)],
        [info("y")],
        functions=[function([NEG])],
    )
    np.testing.assert_array_equal(run(made, X, TRUE), -X)


def test_weights_that_functions_use_are_parameters():
    multiply = function([helper.make_node("Mul", ["a", "w"], ["b"])], inputs=("a", "w"))
    weight = numpy_helper.from_array(2 * X, "w")
    made = model([call(("x", "w"))], [info("x")], [info("y")], [weight], functions=[multiply])
    loaded = tensorplug_onnx.load(made)

    def total(parameters):
        return tp.sum(loaded.apply(parameters, {"x": tp.asarray(X)})["y"])

    np.testing.assert_array_equal(tp.grad(total)(loaded.parameters)["w"].numpy(), X)


# Inputs -----------------------------------------------------------------------------------------


def test_initializers_that_are_inputs_are_defaults():
    weight = numpy_helper.from_array(X, "w")
    shape = numpy_helper.from_array(np.array([3, 1]), "shape")
    nodes = [
        helper.make_node("Add", ["x", "w"], ["s"]),
        helper.make_node("Reshape", ["s", "shape"], ["y"]),
    ]
    inputs = [info("x"), info("w"), info("shape", (2,), TensorProto.INT64)]
    loaded = tensorplug_onnx.load(
        model(nodes, inputs, [info("y", None)], [weight, shape], ir_version=3, opset=8)
    )
    assert [given.name for given in loaded.inputs] == ["x"]
    np.testing.assert_array_equal(loaded(X)["y"].numpy(), 2 * X[:, None])
    np.testing.assert_array_equal(loaded(X, w=3 * X)["y"].numpy(), 4 * X[:, None])
    np.testing.assert_array_equal(loaded(X, shape=np.array([1, 3]))["y"].numpy(), 2 * X[None])
    with pytest.raises(InputError, match="shape"):
        loaded(X, shape=np.array([3.0]))


def test_text():
    words = helper.make_tensor("words", TensorProto.STRING, [2], ["é".encode(), b""])
    text = TensorProto.STRING
    nodes = [helper.make_node("StringConcat", ["x", "words"], ["y"])]
    made = model(nodes, [info("x", (2,), text)], [info("y", (2,), text)], [words])
    found = run(made, np.array(["a", "b"]))
    assert (found.dtype.kind, found.tolist()) == ("T", ["aé", "b"])


def test_sequences_and_optionals():
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    result = helper.make_tensor_sequence_value_info("t", TensorProto.FLOAT, None)
    optional = helper.make_value_info(
        "o",
        helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None)),
    )
    nodes = [
        helper.make_node("SequenceInsert", ["s", "x"], ["t"]),
        helper.make_node("OptionalHasElement", ["o"], ["y"]),
    ]
    outputs = [result, info("y", (), TensorProto.BOOL)]
    loaded = tensorplug_onnx.load(model(nodes, [sequence, info("x"), optional], outputs))
    for given, expected in ((X, True), (None, False)):
        found = loaded([X, 2 * X], X, given)
        assert [one.tolist() for one in found["t"]] == [X.tolist(), (2 * X).tolist(), X.tolist()]
        assert bool(found["y"]) is expected
    assert len(loaded([], X, None)["t"]) == 1


def test_sparse_constants():
    values = numpy_helper.from_array(np.array([5, 7], np.float32), "w")
    places = {(2, 3): [[0, 1], [1, 2]], (6,): [1, 5]}
    expected = np.array([[0, 5, 0], [0, 0, 7]], np.float32)
    for shape, at in places.items():
        sparse = helper.make_sparse_tensor(
            values, numpy_helper.from_array(np.array(at, np.int64)), list(shape)
        )
        made = model(
            [helper.make_node("Add", ["x", "w"], ["y"])], [info("x", shape)], [info("y", shape)],
            sparse_initializer=[sparse],
        )  # fmt: skip
        found = run(made, np.zeros(shape, np.float32))
        np.testing.assert_array_equal(found, expected.reshape(shape))


# Weights in other files -------------------------------------------------------------------------


def external(name, kind, dims, **entries):
    found = TensorProto(name=name, data_type=kind, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        found.external_data.add(key=key, value=str(value))
    return found


def test_weights_beyond_two_gigabytes(tmp_path):
    """The file has holes; nothing reads what lies before the weights."""
    offset = 3 << 30
    with (tmp_path / "weights.bin").open("wb") as file:
        file.seek(offset)
        file.write((2 * X).tobytes())
    weight = external(
        "w", TensorProto.FLOAT, [3], location="weights.bin", offset=offset, length=12
    )
    large = external("large", TensorProto.INT8, [3, 1 << 30], location="weights.bin")
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["y"]),
        helper.make_node("Shape", ["large"], ["z"]),
    ]
    outputs = [info("y"), info("z", (2,), TensorProto.INT64)]
    path = tmp_path / "model.onnx"
    onnx.save(model(nodes, [info("x")], outputs, [weight, large]), path)
    found = tensorplug_onnx.load(path)(X)
    np.testing.assert_array_equal(found["y"].numpy(), 2 * X * X)
    assert found["z"].tolist() == [3, 1 << 30]


PACKED = {
    TensorProto.INT4: (ml_dtypes.int4, [-8, 7, 3]),
    TensorProto.UINT4: (ml_dtypes.uint4, [0, 15, 3]),
    TensorProto.FLOAT8E4M3FN: (ml_dtypes.float8_e4m3fn, [0.5, -448, 1]),
    TensorProto.BFLOAT16: (ml_dtypes.bfloat16, [0.5, -448, 1]),
    TensorProto.BOOL: (np.bool, [True, False, True]),
    TensorProto.INT64: (np.int64, [1 << 40, -1, 0]),
}


@pytest.mark.parametrize("kind", PACKED)
def test_external_element_types(tmp_path, kind):
    dtype, values = PACKED[kind]
    inside = numpy_helper.from_array(np.array(values).astype(dtype), "w")
    assert inside.data_type == kind
    (tmp_path / "w.bin").write_bytes(b"\xff" * 3 + inside.raw_data)
    weight = external("w", kind, [3], location="w.bin", offset=3)
    made = model([helper.make_node("Cast", ["w"], ["y"], to=1)], [], [info("y")], [weight])
    path = tmp_path / "model.onnx"
    onnx.save(made, path)
    np.testing.assert_array_equal(run(path), np.array(values, np.float32))


def test_a_scalar_and_nothing_in_another_file(tmp_path):
    (tmp_path / "w.bin").write_bytes(np.float32(5).tobytes())
    weights = [
        external("w", TensorProto.FLOAT, [], location="w.bin"),
        external("none", TensorProto.FLOAT, [0], location="w.bin", offset=4),
    ]
    nodes = [
        helper.make_node("Add", ["x", "w"], ["s"]),
        helper.make_node("Concat", ["s", "none"], ["y"], axis=0),
    ]
    path = tmp_path / "model.onnx"
    onnx.save(model(nodes, [info("x")], [info("y")], weights), path)
    np.testing.assert_array_equal(run(path, X), X + 5)


def test_sources(tmp_path):
    made = model([helper.make_node("Neg", ["x"], ["y"])], [info("x")], [info("y")])
    path = tmp_path / "model.onnx"
    onnx.save(made, path)
    data = path.read_bytes()
    for source in (
        made,
        path,
        str(path),
        data,
        bytearray(data),
        memoryview(data),
        io.BytesIO(data),
    ):
        np.testing.assert_array_equal(run(source, X), -X)
    with pytest.raises(FileNotFoundError):
        tensorplug_onnx.load(tmp_path / "other.onnx")


def test_inputs_and_outputs_may_have_no_type():
    made = model([helper.make_node("Neg", ["x"], ["y"])], [info("x")], [info("y")])
    for one in (*made.graph.input, *made.graph.output):
        one.ClearField("type")
    np.testing.assert_array_equal(run(made, X), -X)


def test_a_file_that_no_protobuf_can_be_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        file.truncate(1 << 31)  # takes no space on the disk
    monkeypatch.setattr(Path, "read_bytes", None)
    with pytest.raises(ModelError, match=r"large.onnx: 2147483648 bytes.*save_as_external_data"):
        tensorplug_onnx.load(path)
    monkeypatch.setattr(loading, "_MOST_BYTES", 10)
    with pytest.raises(ModelError, match=r"the bytes given: 11 bytes, a protobuf has at most 10"):
        tensorplug_onnx.load(bytes(11))


def test_nothing_of_the_protobuf_is_kept():
    """A part of a protobuf keeps all of it in memory, weights too."""
    weights = np.ones((1 << 20,), np.float32)
    nodes = [
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(weights)),
        helper.make_node("Add", ["c", "w"], ["d"]),
        helper.make_node("Add", ["d", "x"], ["y"]),
    ]
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    graph = helper.make_graph(
        nodes, "graph", [info], [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(2 * weights, "w")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    loaded = tensorplug_onnx.load(model.SerializeToString())
    assert [node.proto.ByteSize() for node in loaded.graph.nodes] == [0, 0, 0]
    found = loaded(np.ones(1, np.float32))["y"]
    assert found.shape == (1 << 20,)
    assert found[0].item() == 4


@pytest.mark.parametrize("size", [8, 1 << 12])
def test_an_initializer_of_a_wrong_size_is_told(size):
    wrong = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], raw_data=bytes(size))
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])], "graph", [info],
        [helper.make_empty_tensor_value_info("y")], [wrong],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    with pytest.raises(ModelError, match=r"'?w'?"):
        tensorplug_onnx.load(model)


def test_a_negative_size_is_any_size():
    loaded = tensorplug_onnx.load(
        model([helper.make_node("Neg", ["x"], ["y"])], [info("x", (-1, 2))], [info("y", (-1, 2))])
    )
    assert loaded.inputs[0].shape == (None, 2)
    for size in (0, 3):
        assert loaded(np.ones((size, 2), np.float32))["y"].shape == (size, 2)
    with pytest.raises(InputError, match=r"has shape \[3, 1\], must be \[\?, 2\]"):
        loaded(np.ones((3, 1), np.float32))
