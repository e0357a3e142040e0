"""What a call takes: inputs in each form, and words for those that do not fit."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import tensorplug as tp
import tensorplug_onnx
from tensorplug_onnx import InputError, ModelError

X = np.array([[1.0, -2.0, 0.5], [3.0, 4.0, -1.0]], np.float32)
W = np.array([2.0, 3.0, -4.0], np.float32)


@pytest.fixture
def scaled(make):
    """Return a function that makes a model of ``y = x * w``."""

    def made(name="x", weights=W):
        nodes = [helper.make_node("Mul", [name, "w"], ["y"])]
        return tensorplug_onnx.load(make(nodes, {name: ("N", 3)}, ["y"], {"w": weights}))

    return made


class Table:
    """What has ``__array__`` and no ``__dlpack__``, as a table of pandas."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


class Closed:
    """What refuses to be exported, as a tensor of PyTorch that needs a gradient."""

    def __dlpack__(self, **options):
        raise BufferError("use detach()")

    def __dlpack_device__(self):
        return 1, 0


@pytest.mark.parametrize(
    "given",
    [X.tolist(), tuple(map(tuple, X.tolist())), Table(X)],
    ids=["lists", "tuples", "__array__"],
)
def test_numbers_of_python_get_the_dtype_of_the_input(scaled, given):
    found = scaled()(given)["y"]
    assert found.dtype == tp.float32
    np.testing.assert_array_equal(found.numpy(), X * W)


def test_integers_of_python_become_floats_and_not_the_reverse(make):
    infos = {
        name: helper.make_tensor_value_info(name, kind, [2])
        for name, kind in (("x", TensorProto.FLOAT), ("k", TensorProto.UINT8))
    }
    nodes = [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Identity", ["k"], ["z"])]
    model = tensorplug_onnx.load(make(nodes, infos, ["y", "z"]))
    found = model([1, 2], [0, 255])
    assert [str(one.dtype) for one in found.values()] == ["float32", "uint8"]
    assert [one.tolist() for one in found.values()] == [[-1.0, -2.0], [0, 255]]
    for wrong, told in (
        ([0.5, 1.0], r"input 'k' is float64, must be uint8"),
        ([1, 256], r"input 'k' is list, must be uint8\[2\]: .*256"),
        ([-1, 0], r"input 'k' is list, must be uint8\[2\]: .*-1"),
    ):
        with pytest.raises(InputError, match=told):
            model([1, 2], wrong)


WRONG = {
    "absent": ((), {}, r"input 'x' is missing; the model has 'x' \(float32\[N,3\]\)"),
    "None": ((None,), {}, "input 'x' is None; the model has 'x'"),
    "unknown": ((), {"z": X}, r"there is no input 'z'; the model has 'x' \(float32\[N,3\]\)"),
    "twice": ((X,), {"x": X}, "input 'x' is given twice"),
    "too many": ((X, X), {}, "2 inputs are given, the model has 'x'"),
    "dtype of a list": (([["a", "b", "c"]],), {}, "input 'x' is string, must be float32"),
    "dtype of a table": ((Table(X.astype(np.float64)),), {}, "is float64, must be float32"),
    "shape of a list": (([1.0, 2.0],), {}, r"has shape \[2\], must be \[N, 3\]"),
    "rows of two lengths": (([[1.0], [1.0, 2.0]],), {}, r"is list, must be float32\[N,3\]"),
    "arrays": (([X, X],), {}, r"input 'x' is list, must be float32\[N,3\]"),
    "an object": ((object(),), {}, r"input 'x' is object, must be float32\[N,3\]"),
    "a map": (({"x": {1: 2.0}},), {}, r"input 'x' is dict, must be float32\[N,3\]"),
    "refused export": ((Closed(),), {}, r"input 'x' is .*Closed, must be .*: use detach"),
    "a parameter's shape": ((X,), {"w": W[:2]}, r"input 'w' has shape \[2\], must be \[3\]"),
}


@pytest.mark.parametrize("case", WRONG)
def test_inputs_that_do_not_fit_are_told(scaled, case):
    args, named, told = WRONG[case]
    with pytest.raises(InputError, match=told):
        scaled()(*args, **named)


def test_foreign_arrays_are_compared_too(scaled):
    class Foreign:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    np.testing.assert_array_equal(scaled()(Foreign(X))["y"].numpy(), X * W)
    with pytest.raises(InputError, match="input 'x' is float64, must be float32"):
        scaled()(Foreign(X.astype(np.float64)))


@pytest.mark.parametrize("name", ["self", "args", "input"])
def test_an_input_has_any_name(scaled, name):
    np.testing.assert_array_equal(scaled(name)(**{name: X})["y"].numpy(), X * W)


def test_parameters_are_given_by_name_but_for_compiled_models(scaled):
    model = scaled()
    np.testing.assert_array_equal(model(X, w=2 * W)["y"].numpy(), X * 2 * W)
    with pytest.raises(InputError, match="'w' is a constant of the compiled model"):
        model.compile()(X, w=2 * W)


def test_apply_tells_wrong_names(scaled):
    model = scaled()
    with pytest.raises(InputError, match="input 'x' is missing"):
        model.apply(model.parameters, {})
    with pytest.raises(InputError, match="there is no parameter 'u'"):
        model.apply({"u": tp.asarray(W)}, {"x": tp.asarray(X)})


def test_what_is_no_source_is_told():
    with pytest.raises(ModelError, match=r"a model is a path, bytes, .* not int"):
        tensorplug_onnx.load(3)


def test_a_model_shows_its_signature_only(scaled):
    assert repr(scaled()) == "<Model (x float32[N,3]) -> (y any[...]): 1 nodes>"


def test_a_summary_says_how_op_types_run(make):
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Shape", ["r"], ["s"]),
        helper.make_node("Reshape", ["r", "s"], ["y"]),
        helper.make_node("Relu", ["y"], ["z"]),
    ]
    model = tensorplug_onnx.load(make(nodes, {"x": ("N", 3)}, ["z"], {}))
    for device, how in (("cpu", "native"), ("minimal", "decomposed")):
        head, table = model.to(device).summary(sizes={"N": 2}).split("\n\n")
        assert head.splitlines()[0] == "inputs      x float32[N,3]"
        rows = [line.split() for line in table.splitlines()[1:]]
        assert rows[0] == ["Relu", "2", how]
        assert ["Shape", "1", "host"] in rows
    with pytest.raises(InputError, match="input 'x' has shape"):
        model.summary({"x": W})
