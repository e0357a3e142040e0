"""The model as a function: inputs, outputs, parameters, devices, errors."""

from __future__ import annotations

import io

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tensorplug as tp
import tensorplug_onnx
from tensorplug_onnx import InputError, ModelError, NodeError, UnsupportedError
from tensorplug_onnx.backend import backend_of, run_node, supports_device
from tensorplug_onnx.command_line import main
from tensorplug_onnx.inspecting import example_inputs, operators_of, profile, summary

X = np.array([[1.0, -2.0, 0.5], [3.0, 4.0, -1.0]], np.float32)
W = np.array([2.0, 3.0, -4.0], np.float32)
B = np.array([0.5, 0.25, 1.0], np.float32)


@pytest.fixture
def affine(make):
    """Return a model of ``y = w * x + b``."""
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["y"]),
    ]
    return make(nodes, {"x": ("N", 3)}, ["y"], {"w": W, "b": B})


class Foreign:
    """An array of another library."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize(
    "given",
    [
        lambda: ((X,), {}),
        lambda: (({"x": X},), {}),
        lambda: ((), {"x": X}),
        lambda: ((X.tolist() and tp.asarray(X),), {}),
        lambda: ((Foreign(X),), {}),
    ],
    ids=["array", "mapping", "name", "tensor", "DLPack"],
)
def test_inputs_come_in_each_way(affine, given):
    args, named = given()
    found = tensorplug_onnx.load(affine)(*args, **named)
    assert list(found) == ["y"]
    assert found["y"].shape == (2, 3)
    assert found["y"].dtype == tp.float32
    np.testing.assert_array_equal(found["y"].numpy(), W * X + B)


@pytest.mark.parametrize("kind", ["path", "text", "bytes", "file"])
def test_a_model_is_loaded_from_each_source(affine, tmp_path, kind):
    path = tmp_path / "model.onnx"
    onnx.save(affine, path)
    data = path.read_bytes()
    source = {"path": path, "text": str(path), "bytes": data, "file": io.BytesIO(data)}[kind]
    np.testing.assert_array_equal(tensorplug_onnx.load(source)(X)["y"].numpy(), W * X + B)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "input 'x' is missing"),
        ({"x": X, "z": X}, "there is no input 'z'; the model has 'x'"),
        ({"x": X.astype(np.float64)}, "input 'x' is float64, must be float32"),
        ({"x": X[:, :2]}, r"input 'x' has shape \[2, 2\], must be \[N, 3\]"),
        ({"x": X[0]}, r"input 'x' has shape \[3\], must be \[N, 3\]"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(affine, given, told):
    with pytest.raises(InputError, match=told):
        tensorplug_onnx.load(affine)(given)


def test_too_many_inputs_are_refused(affine):
    with pytest.raises(InputError, match="2 inputs are given, the model has 'x'"):
        tensorplug_onnx.load(affine)(X, X)


def test_gradients_by_parameters_and_inputs(affine):
    model = tensorplug_onnx.load(affine)
    assert sorted(model.parameters) == ["b", "w"]

    def loss(parameters, x):
        return tp.sum(model.apply(parameters, {"x": x})["y"] ** 2)

    by_parameters, by_x = tp.grad(loss, (0, 1))(dict(model.parameters), tp.asarray(X))
    y = W * X + B
    np.testing.assert_allclose(by_parameters["w"].numpy(), (2 * y * X).sum(0), rtol=1e-6)
    np.testing.assert_allclose(by_parameters["b"].numpy(), (2 * y).sum(0), rtol=1e-6)
    np.testing.assert_allclose(by_x.numpy(), 2 * y * W, rtol=1e-6)


def test_other_parameters_make_another_function(affine):
    model = tensorplug_onnx.load(affine)
    others = {"w": tp.ones((3,)), "b": tp.zeros((3,))}
    np.testing.assert_array_equal(model.apply(others, {"x": tp.asarray(X)})["y"].numpy(), X)


def test_a_compiled_model_gives_the_same(affine):
    model = tensorplug_onnx.load(affine)
    compiled = model.compile()
    for x in (X, X[:1], -X):
        np.testing.assert_allclose(
            compiled(x)["y"].numpy(), model(x)["y"].numpy(), rtol=1e-6, atol=1e-6
        )


@pytest.mark.parametrize("device", ["cpu", "minimal"])
def test_a_model_moves_to_a_device(affine, device):
    model = tensorplug_onnx.load(affine).to(device)
    assert {str(parameter.device) for parameter in model.parameters.values()} == {device}
    found = model(X)["y"]
    assert str(found.device) == device
    np.testing.assert_array_equal(found.numpy(), W * X + B)


def test_a_failing_node_is_named(make):
    model = make(
        [helper.make_node("Add", ["x", "w"], ["y"], name="sum")],
        {"x": (2, 3)},
        ["y"],
        {"w": np.ones(4, np.float32)},
    )
    message = r"node 'sum' \(Add, ai\.onnx 20\) with float32\[2,3\], float32\[4\]: "
    with pytest.raises(NodeError, match=message):
        tensorplug_onnx.load(model)(X)


def test_operators_without_a_rule_are_all_named():
    nodes = [helper.make_node(name, ["x"], ["y"], domain="acme") for name in ("Warp", "Fold")]
    nodes[1].output[0] = "z"
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    graph = helper.make_graph(nodes, "graph", [info], [])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("acme", 3)]
    )
    with pytest.raises(UnsupportedError, match=r"Fold \(acme 3\), Warp \(acme 3\)"):
        tensorplug_onnx.load(model)


def test_what_is_no_model_is_refused():
    with pytest.raises(ModelError, match="not an ONNX model"):
        tensorplug_onnx.load(b"no model at all")


def test_a_summary_counts(affine):
    lines = summary(tensorplug_onnx.load(affine)).splitlines()
    assert lines[0].split() == ["inputs", "x", "float32[N,3]"]
    assert lines[2].startswith("parameters  2, 6 elements")
    assert lines[3].split(maxsplit=1)[1] == "2: Mul 1, Add 1"


def test_a_profile_has_each_node_once(affine):
    runs = profile(tensorplug_onnx.load(affine), {"x": X})
    assert [(run.node.op_type, run.how) for run in runs] == [("Mul", "native"), ("Add", "native")]
    assert all(run.seconds > 0 for run in runs)
    rows = {row.op_type: (row.nodes, row.how) for row in operators_of(runs)}
    assert rows == {"Mul": (1, ("native",)), "Add": (1, ("native",))}


def test_inputs_are_drawn_for_symbolic_sizes(affine):
    found = example_inputs(tensorplug_onnx.load(affine), {"N": 5})
    assert {name: (x.shape, x.dtype) for name, x in found.items()} == {
        "x": ((5, 3), np.dtype(np.float32))
    }


@pytest.mark.parametrize(
    "command", [["info"], ["run"], ["bench", "--compile", "--rounds", "2"], ["profile"]]
)
def test_commands_run_a_model(affine, tmp_path, capsys, command):
    path = tmp_path / "model.onnx"
    onnx.save(affine, path)
    assert main([command[0], str(path), "--backend", "cpu", "--size", "N=2", *command[1:]]) == 0
    assert capsys.readouterr().out


def of_unknown_sizes(nodes, shape, constants=()):
    """Return a model of one input ``x`` and one output ``y``."""
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, of)
        for name, of in (("x", shape), ("y", None))
    )
    initializers = [numpy_helper.from_array(value, name) for name, value in constants]
    graph = helper.make_graph(nodes, "graph", [x], [y], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


RELU = helper.make_node("Relu", ["x"], ["r"])
WINDOW = helper.make_node("MaxPool", ["r"], ["y"], kernel_shape=[512])
SECOND = helper.make_node("Gather", ["r", "at"], ["y"], axis=0)
PAIRS = helper.make_node("Reshape", ["r", "at"], ["y"])  # to a multiple of 31: no size tried is


@pytest.mark.parametrize(
    ("last", "shape", "at", "remark"),
    [
        (WINDOW, ["N", 1, "T"], 0, "sizes that nobody gave: 1024 for N, T"),
        (SECOND, [None, 2], 1, "sizes that nobody gave: 2 for x[0]"),
        (PAIRS, ["N"], [31, -1], "give sizes of N: --size NAME=N"),
    ],
)
def test_models_of_unknown_sizes_are_described(last, shape, at, remark, tmp_path, capsys):
    path = tmp_path / "model.onnx"
    constants = [("at", np.array(at, np.int64))] if len(last.input) > 1 else []
    onnx.save(of_unknown_sizes([RELU, last], shape, constants), path)
    text = tensorplug_onnx.load(path).summary()
    assert remark in text.splitlines()[-1]
    assert main(["info", str(path)]) == 0
    assert remark in capsys.readouterr().out.replace("\n", " ")
    works = "nobody gave" in remark
    assert ("not reached" in text) == (not works)
    assert main(["run", str(path)]) == (not works)
    assert remark in capsys.readouterr().err
    name = "x[0]" if shape[0] is None else "N"
    given = ["--size", f"{name}=31", *(["--size", "T=600"] if "T" in shape else [])]
    assert main(["run", str(path), *given]) == 0


def test_what_cannot_be_drawn_is_described_without_a_run(capsys, tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(of_unknown_sizes([helper.make_node("Relu", ["x"], ["y"])], None), path)
    assert main(["info", str(path)]) == 0
    said = capsys.readouterr().out
    assert "not reached" in said
    assert "x float32[...] cannot be drawn: give the inputs" in said.replace("\n", " ")


def test_outputs_are_saved(affine, tmp_path):
    path, inputs, outputs = (tmp_path / name for name in ("m.onnx", "in.npz", "out.npz"))
    onnx.save(affine, path)
    np.savez(inputs, x=X)
    assert main(["run", str(path), "--inputs", str(inputs), "--output", str(outputs)]) == 0
    np.testing.assert_array_equal(np.load(outputs)["y"], W * X + B)


def test_a_wrong_file_is_told_and_not_traced(tmp_path, capsys):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"no model")
    assert main(["info", str(path)]) == 1
    assert "not an ONNX model" in capsys.readouterr().err


def test_onnxs_interface_runs_nodes_and_models(affine):
    node = helper.make_node("Add", ["a", "b"], ["y"])
    [found] = run_node(node, [X, X])
    np.testing.assert_array_equal(found, X + X)
    backend = backend_of("minimal")
    outputs = backend.run_model(affine, [X])
    np.testing.assert_array_equal(outputs["y"], W * X + B)
    assert supports_device("CPU")
    assert supports_device("minimal")
    assert not supports_device("nowhere")
