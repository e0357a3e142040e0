"""Files that are damaged or malicious: each raises an error of the package, and nothing else."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tensorplug_onnx
from tensorplug_onnx import ExternalDataError, ModelError, NodeError, OnnxError, UnsupportedError

X = np.array([1.0, -2.0], np.float32)
OWN = helper.make_opsetid("own", 1)


def info(name, shape=("n",)):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model(nodes, initializers=(), *, opset=21, functions=(), domains=(), **more):
    """Return a model from x to y."""
    graph = helper.make_graph(
        nodes, "graph", [info("x")], [info("y", None)], list(initializers), **more
    )
    opsets = [helper.make_opsetid("", opset), *domains]
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)


def add(*inputs):
    return helper.make_node("Add", list(inputs), ["y"])


@pytest.fixture(scope="module")
def small():
    """Return the bytes of a model with weights, a constant and graphs inside of it."""
    weights = {"w": np.arange(2, dtype=np.float32), "axes": np.array([0])}
    branches = {
        name: helper.make_graph(
            [helper.make_node(op_type, ["a"], [out])], name, [], [info(out, None)]
        )
        for name, op_type, out in (("then_branch", "Relu", "t"), ("else_branch", "Neg", "e"))
    }
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["a"], name="product"),
        helper.make_node("ReduceSum", ["a", "axes"], ["s"], keepdims=0),
        helper.make_node("Constant", [], ["z"], value=numpy_helper.from_array(np.float32(0))),
        helper.make_node("Greater", ["s", "z"], ["positive"]),
        helper.make_node("If", ["positive"], ["b"], **branches),
        helper.make_node("twice", ["b"], ["y"], domain="own"),
    ]
    twice = helper.make_function(
        "own", "twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 21)],
    )  # fmt: skip
    initializers = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    return model(nodes, initializers, functions=[twice], domains=[OWN]).SerializeToString()


def outcome(data):
    """Load and run a model; return the error of the package, None if there was none."""
    begin, found = time.process_time(), None
    try:
        loaded = tensorplug_onnx.load(data)
        loaded({given.name: X for given in loaded.inputs})
    except OnnxError as error:
        found = error
    assert time.process_time() - begin < 10
    assert found is None or str(found)
    return found


def test_the_model_runs_if_it_is_whole(small):
    found = tensorplug_onnx.load(small)(X)["y"]
    assert found.shape == (2,)
    np.testing.assert_array_equal(found.numpy(), [0, 4])  # -2 * [0, -2]


def test_truncated(small):
    for size in range(0, len(small), 7):
        error = outcome(small[:size])
        assert isinstance(error, ModelError), size


def test_changed_bytes(small):
    draw = random.Random(20)
    seen = set()
    for _ in range(400):
        data = bytearray(small)
        for _ in range(draw.choice((1, 1, 2, 4))):
            data[draw.randrange(len(data))] = draw.randrange(256)
        seen.add(type(outcome(bytes(data))))
    assert {ModelError, type(None)} <= seen  # most are noticed, some change a weight


def nested(depth):
    """Return the bytes of a model with graphs in one another: graph, node, attribute, graph..."""

    def field(number, payload):
        size, length = len(payload), b""
        while size > 127:
            length += bytes([size & 127 | 128])
            size >>= 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + payload

    graph = b""
    for _ in range(depth):
        graph = field(1, field(5, field(1, b"then_branch") + field(6, graph)))
    return b"\x08\x0a" + field(7, graph) + field(8, b"\x10\x15")


@pytest.mark.parametrize("depth", [50, 10_000])
def test_nested_graphs(depth):
    assert isinstance(outcome(nested(depth)), ModelError)


def tensor(dims, *, data_type=TensorProto.FLOAT, raw=b"\0" * 8, **more):
    return TensorProto(name="w", data_type=data_type, dims=dims, raw_data=raw, **more)


def sparse(dims, indices):
    values = numpy_helper.from_array(np.ones(len(indices), np.float32), "w")
    return helper.make_sparse_tensor(
        values, numpy_helper.from_array(np.array(indices, np.int64)), dims
    )


def function(name, nodes, inputs=("a",), outputs=("b",)):
    opsets = [helper.make_opsetid("", 21), OWN]
    return helper.make_function("own", name, list(inputs), list(outputs), nodes, opsets)


def call(name, given, found):
    return helper.make_node(name, [given], [found], domain="own")


def flood():
    """Return functions of which each calls the one before twice: 2**40 nodes."""
    found = [function("f0", [helper.make_node("Neg", ["a"], ["b"])])]
    found += [
        function(f"f{at}", [call(f"f{at - 1}", "a", "t"), call(f"f{at - 1}", "t", "b")])
        for at in range(1, 41)
    ]
    return found


def hidden_cycle():
    """Return a function that calls itself in a branch."""
    branch = helper.make_graph([call("f", "a", "t")], "branch", [], [info("t", None)])
    true = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True)))
    chosen = helper.make_node("If", ["c"], ["b"], then_branch=branch, else_branch=branch)
    return [function("f", [true, chosen])]


BAD = {
    "no graph": (onnx.ModelProto, ModelError, "no graph"),
    "cycle": (
        lambda: model([helper.make_node("Neg", ["y"], ["a"]), add("x", "a")]),
        ModelError, "topologically sorted",
    ),
    "missing initializer": (lambda: model([add("x", "w")]), ModelError, "'w'"),
    "output twice": (lambda: model([add("x", "x"), add("x", "x")]), ModelError, "'y'"),
    "initializer twice": (
        lambda: model([add("x", "w")], [tensor([2]), tensor([2])]), ModelError, "w ",
    ),
    "domain that is not imported": (
        lambda: model([helper.make_node("Odd", ["x"], ["y"], domain="odd")]), ModelError, "'odd'",
    ),
    "unknown domain": (
        lambda: model([helper.make_node("Odd", ["x"], ["y"], domain="own")], domains=[OWN]),
        UnsupportedError, "Odd",
    ),
    "unknown operator": (
        lambda: model([helper.make_node("Odd", ["x"], ["y"])]), ModelError, "Odd",
    ),
    "newer opset": (lambda: model([add("x", "x")], opset=999), UnsupportedError, "opset 999"),
    "type of an attribute": (
        lambda: model([helper.make_node("Elu", ["x"], ["y"], alpha="a")]), ModelError, "alpha",
    ),
    "too few elements": (lambda: model([add("x", "w")], [tensor([3])]), ModelError, "w"),
    "too many elements": (lambda: model([add("x", "w")], [tensor([1])]), ModelError, "w"),
    "part of an element": (
        lambda: model([add("x", "w")], [tensor([2], raw=b"\0" * 7)]), ModelError, "w",
    ),
    "negative size": (lambda: model([add("x", "w")], [tensor([-2])]), ModelError, "w"),
    "two negative sizes": (lambda: model([add("x", "w")], [tensor([-1, -2])]), ModelError, "w"),
    "huge size": (lambda: model([add("x", "w")], [tensor([1 << 62])]), ModelError, "w"),
    "product of sizes": (
        lambda: model([add("x", "w")], [tensor([1 << 32, 1 << 32], raw=b"")]), ModelError, "w",
    ),
    "unknown element type": (
        lambda: model([add("x", "w")], [tensor([2], data_type=77)]), ModelError, "type 77",
    ),
    "text that is not UTF-8": (
        lambda: model([add("x", "w")], [
            TensorProto(name="w", data_type=TensorProto.STRING, dims=[1], string_data=[b"\xff"])
        ]), ModelError, "'w'",
    ),
    "huge sparse constant": (
        lambda: model([add("x", "w")], sparse_initializer=[sparse([1 << 40], [1])]),
        ModelError, "'w'",
    ),
    "sparse index": (
        lambda: model([add("x", "w")], sparse_initializer=[sparse([2], [2])]), ModelError,
        "(?i)range",
    ),
    "function that calls itself": (
        lambda: model([call("f", "x", "y")], functions=[function("f", [call("f", "a", "b")])],
                      domains=[OWN]),
        ModelError, "(?i)itself|cycle",
    ),
    "function that calls itself in a branch": (
        lambda: model([call("f", "x", "y")], functions=hidden_cycle(), domains=[OWN]),
        ModelError, "(?i)itself|cycle",
    ),
    "flood of calls": (
        lambda: model([call("f40", "x", "y")], functions=flood(), domains=[OWN]),
        ModelError, "more than",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_invalid_model(case):
    make, error, words = BAD[case]
    begin = time.process_time()
    with pytest.raises(error, match=words):
        tensorplug_onnx.load(make())
    assert time.process_time() - begin < 10


def test_huge_result():
    made = model([
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Mul", ["s", "w"], ["t"]),
        helper.make_node("ConstantOfShape", ["t"], ["y"], name="filled"),
    ], [numpy_helper.from_array(np.array([1 << 60]), "w")])  # fmt: skip
    with pytest.raises(NodeError, match="filled"):
        tensorplug_onnx.load(made)(X)


# Weights in other files -----------------------------------------------------------------------


def outside(**entries):
    """Return a weight of two elements that lies in another file."""
    found = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2])
    found.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        found.external_data.add(key=key, value=value)
    return found


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a file of weights, a link out of it, and a secret beside it."""
    own = tmp_path / "own"
    (own / "inner").mkdir(parents=True)
    (own / "w.bin").write_bytes(np.array([5, 7], np.float32).tobytes())
    (tmp_path / "secret.bin").write_bytes(b"\1" * 8)
    (tmp_path / "own-not").mkdir()
    (tmp_path / "own-not" / "w.bin").write_bytes(b"\1" * 8)
    (own / "link.bin").symlink_to(tmp_path / "secret.bin")
    (own / "inner" / "folder").symlink_to(tmp_path)
    (own / "loop.bin").symlink_to(own / "loop.bin")
    os.mkfifo(own / "pipe.bin")
    return own


EXTERNAL = {
    "climbs": ({"location": "../secret.bin"}, "out of the folder"),
    "climbs from inside": ({"location": "inner/../../secret.bin"}, "out of the folder"),
    "neighbour of a similar name": ({"location": "../own-not/w.bin"}, "out of the folder"),
    "absolute": ({"location": "/etc/hostname"}, "out of the folder"),
    "link": ({"location": "link.bin"}, "out of the folder"),
    "link of a folder": ({"location": "inner/folder/secret.bin"}, "out of the folder"),
    "link to itself": ({"location": "loop.bin"}, "loop.bin"),
    "pipe": ({"location": "pipe.bin"}, "no file"),
    "folder": ({"location": "inner"}, "no file"),
    "NUL": ({"location": "w.bin\0"}, "w.bin"),
    "empty": ({"location": ""}, "no file"),
    "absent": ({}, "no file"),
    "drive": ({"location": "C:\\w.bin"}, "no file"),
    "long": ({"location": "w" * 5000}, "no path"),
    "offset beyond the end": ({"location": "w.bin", "offset": "4096"}, "has 8"),
    "offset in the last element": ({"location": "w.bin", "offset": "1"}, "has 8"),
    "negative offset": ({"location": "w.bin", "offset": "-4"}, "offset is '-4'"),
    "negative length": ({"location": "w.bin", "length": "-8"}, "length is '-8'"),
    "length of fewer elements": ({"location": "w.bin", "length": "4"}, "needs 8 bytes"),
    "length that is no number": ({"location": "w.bin", "length": "eight"}, "'eight'"),
    "number of many digits": ({"location": "w.bin", "offset": "9" * 5000}, "number of bytes"),
}


@pytest.mark.parametrize("case", EXTERNAL)
def test_external(folder, case):
    entries, words = EXTERNAL[case]
    path = folder / "model.onnx"
    path.write_bytes(model([add("x", "w")], [outside(**entries)]).SerializeToString())
    with pytest.raises(ExternalDataError, match=words):
        tensorplug_onnx.load(path)


@pytest.mark.parametrize("dims", [[-2], [1 << 40], [1 << 62, 4]])
def test_external_of_a_size_that_the_file_does_not_have(folder, dims):
    weight = outside(location="w.bin")
    weight.dims[:] = dims
    path = folder / "model.onnx"
    path.write_bytes(model([add("x", "w")], [weight]).SerializeToString())
    with pytest.raises(ExternalDataError, match="needs"):
        tensorplug_onnx.load(path)


def test_external_of_a_model_without_a_folder():
    data = model([add("x", "w")], [outside(location="w.bin")]).SerializeToString()
    with pytest.raises(ExternalDataError, match="no folder"):
        tensorplug_onnx.load(data)


def everywhere(entries):
    """Return models with an external weight in each place that can have one."""
    weight = outside(**entries)
    constant = helper.make_node("Constant", [], ["w"], value=weight)
    branch = helper.make_graph([constant], "branch", [], [info("w", None)])
    true = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True)))
    chosen = helper.make_node("If", ["c"], ["w2"], then_branch=branch, else_branch=branch)
    values = outside(**entries)
    values.name = "w"
    return {
        "initializer": model([add("x", "w")], [weight]),
        "attribute": model([constant, add("x", "w")]),
        "branch": model([true, chosen, add("x", "w2")]),
        "function": model(
            [call("f", "x", "y")],
            functions=[function("f", [constant, helper.make_node("Add", ["a", "w"], ["b"])])],
            domains=[OWN],
        ),
        "sparse": model([add("x", "w")], sparse_initializer=[
            onnx.SparseTensorProto(
                values=values, indices=numpy_helper.from_array(np.array([0, 1])), dims=[2]
            )
        ]),
    }  # fmt: skip


# Prints what each model gives, and which files Python opens for it.
WATCHER = """
import sys
import numpy, tensorplug_onnx, tensorplug as tp
tp.asarray([1.0]) + 1
opened = []
sys.addaudithook(lambda event, args: opened.append(args[0]) if event == "open" else None)
for path in sys.argv[1:]:
    before = len(opened)
    try:
        found = tensorplug_onnx.load(path)(numpy.ones(2, numpy.float32))["y"].tolist()
    except tensorplug_onnx.OnnxError as error:
        found = type(error).__name__
    names = sorted({str(name) for name in opened[before:]})
    python = (sys.prefix, sys.base_prefix)  # its own files
    names = [name for name in names if not name.startswith(python)]
    print(path.rsplit("/")[-1], found, *names, sep="|")
"""


def watched(paths, cwd):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WATCHER), *map(str, paths)],
        capture_output=True, text=True, check=True, cwd=cwd, timeout=120,
    )  # fmt: skip
    return {line.split("|")[0]: line.split("|")[1:] for line in done.stdout.splitlines()}


def test_nothing_outside_the_folder_is_opened(folder):
    paths = []
    for at, case in enumerate(("climbs", "absolute", "link", "link of a folder", "NUL")):
        for place, made in everywhere(EXTERNAL[case][0]).items():
            paths.append(folder / f"{place}{at}.onnx")
            paths[-1].write_bytes(made.SerializeToString())
    found = watched(paths, folder.parent)
    for path in paths:
        error, *opened = found[path.name]
        assert error in ("ExternalDataError", "ModelError"), path.name
        assert opened == [str(path)]


def test_weights_are_read_from_each_place(folder):
    # The current folder has a file of the same name, with other weights.
    (folder.parent / "w.bin").write_bytes(b"\1" * 8)
    paths = []
    for place, made in everywhere({"location": "w.bin"}).items():
        paths.append(folder / f"{place}.onnx")
        paths[-1].write_bytes(made.SerializeToString())
    found = watched(paths, folder.parent)
    for path in paths:
        value, *opened = found[path.name]
        if path.stem == "sparse":  # refused: no writer of models puts these into other files
            assert value == "ModelError"
            continue
        assert value == "[6.0, 8.0]", path.name
        assert opened == sorted({str(path), str(folder / "w.bin")})
