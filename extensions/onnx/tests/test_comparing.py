"""Outputs beside those of another program."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tensorplug_onnx
from tensorplug_onnx import comparing
from tensorplug_onnx.command_line import main
from tensorplug_onnx.comparing import compare
from tensorplug_onnx.errors import InputError
from tensorplug_onnx.inspecting import example_inputs

REFERENCES = [
    pytest.param(
        "onnxruntime",
        marks=pytest.mark.skipif(find_spec("onnxruntime") is None, reason="no onnxruntime"),
    ),
    "onnx",
]
DIGITS = Path(__file__).parents[1] / "examples" / "digits" / "digits.onnx"  # with trained weights
MODELS = [DIGITS, *sorted((Path(__file__).parent / "models").glob("*.onnx"))]


@pytest.fixture
def model(make, tmp_path):
    """The path of a model of two outputs: y = x + 1, and whether x > 0."""
    nodes = [
        helper.make_node("Add", ["x", "one"], ["y"]),
        helper.make_node("Greater", ["x", "zero"], ["more"]),
    ]
    constants = {"one": np.ones(1, np.float32), "zero": np.zeros(1, np.float32)}
    proto = make(nodes, {"x": (3,)}, ["y", "more"], constants)
    for output, dtype in zip(
        proto.graph.output, (TensorProto.FLOAT, TensorProto.BOOL), strict=True
    ):
        output.type.CopyFrom(helper.make_tensor_type_proto(dtype, [3]))
    onnx.save(proto, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


@pytest.mark.parametrize("reference", REFERENCES)
def test_each_output_has_an_error_for_each_way_to_run(model, reference):
    found = compare(model, {"x": np.float32([-1, 2, np.inf])}, reference)
    assert [(one.name, one.how, one.error) for one in found] == [
        ("y", "node by node", 0.0),
        ("more", "node by node", 0.0),
        ("y", "compiled", 0.0),
        ("more", "compiled", 0.0),
    ]


ONE = np.float32([1, -4, 2])
INF = np.float32(np.inf)
TEXTS = np.array(["a", "b"], np.dtypes.StringDType())


@pytest.mark.parametrize(
    ("found", "right", "error"),
    [
        (ONE, ONE, 0.0),
        (ONE + np.float32([0, 0, 1]), ONE, 0.25),
        (ONE + np.float32([0, 0, np.nan]), ONE, np.inf),
        (ONE, ONE + np.float32([0, 0, np.nan]), np.inf),
        (ONE * INF, ONE * INF, 0.0),
        (-ONE * INF, ONE * INF, np.inf),
        (ONE[:2], ONE, np.inf),
        (ONE.astype(np.float64), ONE, np.inf),
        (ONE * 0, ONE * 0, 0.0),
        (ONE * 0 + 1, ONE * 0, np.inf),
        (ONE[:0], ONE[:0], 0.0),
        (np.complex64([3 + 4j]), np.complex64([3 - 1j]), 5 / 10**0.5),
        (TEXTS, TEXTS.astype(object), 0.0),
        (TEXTS[::-1], TEXTS.astype(object), np.inf),
        (np.bool_([True]), np.bool_([False]), np.inf),
    ],
)
def test_the_error_is_by_the_largest_magnitude(found, right, error):
    assert comparing._error([found], [right]) == pytest.approx(error)


def test_sequences_are_compared_by_their_length():
    assert comparing._error([ONE], [ONE, ONE]) == np.inf
    assert comparing._error([], []) == 0


def test_what_cannot_be_compared_is_named():
    with pytest.raises(InputError, match="an output is a dict"):
        comparing._arrays([{1: ONE}])


def test_without_onnxruntime_the_error_says_what_to_do(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(InputError, match="pip install onnxruntime"):
        compare(model, {"x": ONE})


@pytest.mark.parametrize(("tolerance", "status"), [("1e-4", 0), ("-1", 1)])
def test_the_command(model, tolerance, status, capsys):
    command = ["compare", str(model), "--reference", "onnx", "--backend", "minimal"]
    assert main([*command, "--tolerance", tolerance]) == status
    text = capsys.readouterr().out
    assert "minimal beside onnx" in text
    assert ("differs" in text) == bool(status)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_models_of_pytorch_agree_with_onnxruntime(path):
    pytest.importorskip("onnxruntime")
    inputs = example_inputs(tensorplug_onnx.load(path))
    found = compare(path, inputs)
    assert max(one.error for one in found) <= comparing.TOLERANCE
