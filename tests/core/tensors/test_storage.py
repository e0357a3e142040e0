"""Saving and loading named tensors: the file, the loaded tensors, refusals."""

from __future__ import annotations

import json
import os
import stat
import struct
import subprocess
import sys

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from tests.core.support import sharing

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.errors import (
    ArgumentError,
    BackendMemoryError,
    DisposedError,
    DTypeError,
    ShapeError,
)

SAVED = sorted(dtype.name for dtype in dt.FIXED - {dt.complex128})


@pytest.fixture(autouse=True)
def engine():
    made = sharing.make()
    with sharing.engines.using(made):
        yield made


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def numbers(dtype, shape):
    whole = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 7
    return (whole * (1 + 2j if dtype.startswith("complex") else 1)).astype(dt.of(dtype).numpy)


def same(actual, expected):
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(actual, expected)


# Round trips ------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["sharing", "memory"])
@pytest.mark.parametrize("dtype", SAVED)
def test_round_trip(path, dtype, device):
    given = {str(shape): numbers(dtype, shape) for shape in [(), (0,), (2, 0, 3), (5,), (2, 3)]}
    tp.save({name: tp.asarray(array).to(device) for name, array in given.items()}, path)
    loaded = tp.load(path, device=device)
    assert loaded.keys() == given.keys()
    for name, x in loaded.items():
        assert (type(x), x.device) == (tp.Tensor, device)
        same(x.numpy(), given[name])
    for name, array in safetensors.numpy.load_file(path).items():
        same(array, given[name])


@pytest.mark.parametrize(
    "view", [lambda x: x.T, lambda x: x[::-1, ::2], lambda x: np.broadcast_to(x[0], (3, 3))]
)
def test_elements_are_saved_in_their_order(path, view):
    array = view(np.arange(6.0).reshape(2, 3))
    tp.save({"x": tp.from_dlpack(array), "array": array}, path)
    same(tp.load(path)["x"].numpy(), array)
    same(tp.load(path)["array"].numpy(), array)


def test_special_values_keep_their_bits(path):
    bits = np.array([0x7FC00001, 0xFFC00000, 0x80000000, 0x7F800000, 1], np.uint32)
    tp.save({"x": tp.asarray(bits.view(np.float32))}, path)
    assert tp.load(path)["x"].numpy().view(np.uint32).tolist() == bits.tolist()


def test_tensor_likes_may_be_saved(path):
    tp.save({"list": [1, 2], "number": 2.5, "bool": np.array([True])}, path)
    loaded = tp.load(path)
    types = {name: str(x.type) for name, x in loaded.items()}
    assert types == {"list": "int32[2]", "number": "float32[]", "bool": "bool[1]"}
    assert loaded["list"].tolist() == [1, 2]


def test_variables_are_saved_by_their_contents(path):
    weights = tp.Variable([1.0, 2.0], name="weights")
    tp.save({weights.name: weights}, path)
    weights.assign([0.0, 0.0])
    weights.assign(tp.load(path)["weights"])
    assert weights.tolist() == [1, 2]


def test_files_of_others(path):
    given = {"w": numbers("float16", (3, 2)), "b.0": numbers("int64", (2,))}
    safetensors.numpy.save_file(given, path, metadata={"format": "np"})
    for name, x in tp.load(path).items():
        same(x.numpy(), given[name])


def test_files_of_torch_and_for_torch(path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    files = pytest.importorskip("safetensors.torch")
    given = {"w": torch.arange(6.0).reshape(2, 3), "h": torch.ones(2, dtype=torch.float16)}
    files.save_file(given, path)
    loaded = tp.load(path)
    for name, x in given.items():
        same(loaded[name].numpy(), x.numpy())
    tp.save(loaded, path)
    for name, x in files.load_file(path).items():
        assert torch.equal(x, given[name])


def test_an_empty_file(path):
    tp.save({}, path)
    assert tp.load(path) == {}
    assert safetensors.numpy.load_file(path) == {}


def test_metadata_is_in_the_header(path):
    tp.save({"x": tp.ones((1,))}, path, metadata={"author": "ÄÖ", "": "empty"})
    with safetensors.safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"author": "ÄÖ", "": "empty"}
    tp.save({"x": tp.ones((1,))}, path)
    with safetensors.safe_open(path, framework="numpy") as file:
        assert not file.metadata()


def test_names_choose_and_order(path):
    tp.save({name: tp.asarray(at) for at, name in enumerate("abc")}, path)
    assert {k: x.item() for k, x in tp.load(path, names=["c", "a"]).items()} == {"c": 2, "a": 0}
    assert list(tp.load(path, names=["c", "a"])) == ["c", "a"]
    assert tp.load(path, names=()) == {}
    for name in ("ä", "with space", "a/b", "."):
        tp.save({name: tp.ones((1,))}, path)
        assert list(tp.load(path)) == [name]


def test_devices_of_loaded_tensors(path):
    tp.save({"x": tp.ones((2,))}, path)
    assert tp.load(path)["x"].device == "sharing"
    assert tp.load(path, device="host")["x"].device == "host"
    with tp.use_backend("memory"):
        assert tp.load(path)["x"].device == "memory"
        with tp.tidy():
            x = tp.load(path, device="sharing")["x"]
            assert x.device == "sharing"
    assert x.is_disposed


def test_loaded_tensors_do_not_hang_on_the_file(path):
    tp.save({"x": tp.asarray([1.0, 2.0])}, path)
    x = tp.load(path)["x"]
    with path.open("r+b") as file:
        size = file.seek(0, 2)
        file.seek(0)
        file.write(bytes(size))
    assert x.tolist() == [1, 2]


def test_on_the_tape_constants_are_saved(path):
    def f(p):
        tp.save({"p": p}, path)
        return tp.sum(tp.load(path)["p"] * p)

    assert tp.grad(f)(tp.asarray([2.0, 3.0])).tolist() == [2, 3]


# Nested dicts -----------------------------------------------------------------------------


def test_nested_dicts_there_and_back(path):
    given = {"a": {"b": {"w": [1.0], "v": [2.0]}, "c": [3.0]}, "d": [4.0]}
    tp.save(given, path)
    flat = tp.load(path, nested=False)
    assert {name: x.tolist() for name, x in flat.items()} == {
        "a.b.w": [1],
        "a.b.v": [2],
        "a.c": [3],
        "d": [4],
    }
    nested = tp.load(path, nested=True)
    assert tp.tree_map(tp.Tensor.tolist, nested) == given


def test_dots_in_flat_names_are_fine(path):
    given = {"a.b": tp.ones((1,)), "a!": tp.ones((1,)), "a": tp.zeros((1,))}
    tp.save(given, path)  # as text, "a!" would stand between the others
    assert set(tp.load(path)) == {"a.b", "a!", "a"}
    with pytest.raises(
        ArgumentError, match=r"load: nested dicts cannot contain both 'a' and 'a\.b'"
    ):
        tp.load(path, nested=True)
    assert set(tp.load(path, nested=True, names=["a.b"])["a"]) == {"b"}


# What is refused when saving --------------------------------------------------------------

ONE = np.ones(1, np.float32)

REFUSED = [
    ([ONE], ArgumentError, "save: tensors must be a dict of tensors by name, got list"),
    ({1: ONE}, ArgumentError, "save: name 1: a name must be text"),
    ({"": ONE}, ArgumentError, "save: name '': a name must be text that is not empty"),
    (
        {"a": {"": ONE}},
        ArgumentError,
        "save: name '' in 'a': a name must be text that is not empty",
    ),
    ({"__metadata__": ONE}, ArgumentError, "not '__metadata__'"),
    ({"\ud800": ONE}, ArgumentError, r"save: name '\\ud800': a name must be text"),
    (
        {"a": {"b.c": ONE}},
        ArgumentError,
        r"save: name 'b\.c' in 'a': the names of nested dicts must not",
    ),
    (
        {"a": {"b": ONE}, "a.b": ONE},
        ArgumentError,
        r"save: name 'a\.b': the names of nested dicts must not",
    ),
    ({"a": {}}, ArgumentError, "save: name 'a': an empty dict cannot be saved"),
    ({"a": {"b": {}}}, ArgumentError, "save: name 'b' in 'a': an empty dict cannot be saved"),
    ({"z": np.ones(2, complex)}, DTypeError, r"save: 'z' is complex128\[2\], but .*; use astype"),
    ({"t": ["a"]}, DTypeError, r"save: 't' is string\[1\], but .*; text goes into metadata"),
    ({"n": {"t": ["a"]}}, DTypeError, r"save: 'n\.t' is string"),
    ({"o": object()}, DTypeError, "save: 'o': object .* has elements of object"),
    ({"o": None}, DTypeError, "save: 'o': NoneType"),
    ({"r": [[1], [1, 2]]}, ShapeError, "save: 'r': nested lists must be rectangular"),
]


@pytest.mark.parametrize(("tensors", "error", "message"), REFUSED)
def test_refused(path, tensors, error, message):
    path.write_bytes(b"as it was")
    with pytest.raises(error, match=message):
        tp.save(tensors, path)
    assert path.read_bytes() == b"as it was"
    assert list(path.parent.iterdir()) == [path]


def test_disposed_tensors_are_not_saved(path):
    x = tp.ones((2,))
    x.dispose()
    with pytest.raises(DisposedError, match="save: 'x': this tensor"):
        tp.save({"x": x}, path)


@pytest.mark.parametrize("metadata", [{"a": 1}, {1: "a"}, {"a": "\ud800"}, {"a": b"bytes"}])
def test_metadata_is_text(path, metadata):
    with pytest.raises(ArgumentError, match=r"save: metadata must be text by name, but contains"):
        tp.save({"x": ONE}, path, metadata=metadata)
    with pytest.raises(ArgumentError, match="save: metadata must be a dict of strings, got list"):
        tp.save({"x": ONE}, path, metadata=[("a", "b")])


class Unreadable:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("out of reach")


def test_an_object_that_gives_no_array(path):
    with pytest.raises(RuntimeError, match="out of reach") as got:
        tp.save({"x": Unreadable()}, path)
    assert got.value.__notes__ == ["while 'x' was saved"]


# Writing ----------------------------------------------------------------------------------


FILLS_UP = """
import resource, signal, sys
import numpy as np
import tensorplug as tp

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    tp.save({"x": np.zeros(1000)}, sys.argv[1])
except OSError as error:
    print(error.strerror, error.__notes__)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
def test_a_failure_leaves_the_old_file(path):
    tp.save({"x": tp.ones((2,))}, path)
    ended = subprocess.run(
        [sys.executable, "-c", FILLS_UP, str(path)], capture_output=True, text=True, check=False
    )
    assert (ended.stdout, ended.stderr) == (f"File too large ['while {path} was saved']\n", "")
    assert tp.load(path)["x"].tolist() == [1, 1]
    assert list(path.parent.iterdir()) == [path]


def test_an_interruption_leaves_the_old_file(path, monkeypatch):
    tp.save({"x": tp.ones((2,))}, path)

    def interrupted(_descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tp.save({"x": tp.zeros((2,))}, path)
    assert tp.load(path)["x"].tolist() == [1, 1]
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="rights of POSIX")
def test_rights_are_those_of_a_plain_file(path):
    path.parent.joinpath("plain").touch()
    plain = stat.S_IMODE(path.parent.joinpath("plain").stat().st_mode)
    tp.save({"x": ONE}, path)
    assert stat.S_IMODE(path.stat().st_mode) == plain
    path.chmod(0o640)
    tp.save({"x": ONE}, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_stays_a_link(path, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(path)
    tp.save({"x": tp.ones((2,))}, link)
    assert link.is_symlink()
    assert tp.load(path)["x"].tolist() == tp.load(link)["x"].tolist() == [1, 1]


def test_places_where_no_file_can_be(tmp_path):
    with pytest.raises(FileNotFoundError):
        tp.save({"x": ONE}, tmp_path / "missing" / "file")
    with pytest.raises(OSError, match=r"irectory|denied"):
        tp.save({"x": ONE}, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no such devices there")
def test_devices_are_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ArgumentError, match="pipe is not a regular file"):
        tp.save({"x": ONE}, pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


# Loading ----------------------------------------------------------------------------------


def test_names_that_are_not_there(path):
    tp.save({f"x{at}": ONE for at in range(10)}, path)
    with pytest.raises(ArgumentError, match=r"has no 'y'; it has 'x0', .*'x7', \.\.\.$"):
        tp.load(path, names=["x0", "y"])
    with pytest.raises(ArgumentError, match=r"load: names must be a list such as \['x0'\]"):
        tp.load(path, names="x0")


@pytest.mark.parametrize("code", ["F6_E2M3", "F6_E3M2"])
def test_dtypes_that_tensors_do_not_have(path, code):
    size = 3
    entries = {
        "x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
        "b": {"dtype": code, "shape": [4], "data_offsets": [4, 4 + size]},
    }
    header = json.dumps(entries).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4 + size))
    with pytest.raises(DTypeError, match=f"load: 'b' is {code}, which .* names="):
        tp.load(path)
    assert tp.load(path, names=["x"])["x"].tolist() == [0]


def test_dtypes_that_the_device_does_not_have(path, engine):
    tp.save({"x": np.ones(2)}, path)
    engine.devices.source.dtypes["memory"] = frozenset({tp.float32})
    with pytest.raises(DTypeError, match=r"load: 'x': float64\[2\] is not possible on backend"):
        tp.load(path, device="memory")


def test_no_room_on_the_device(path, engine):
    tp.save({"x": np.ones(2)}, path)
    engine.open("memory").backend.room = 8
    with pytest.raises(BackendMemoryError) as got:
        tp.load(path, device="memory")
    assert got.value.__notes__ == ["while copying load: 'x' to backend 'memory'"]


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError) as got:
        tp.load(tmp_path / "missing")
    assert got.value.filename == str(tmp_path / "missing")
    with pytest.raises(OSError, match=r"irectory|denied"):
        tp.load(tmp_path)


def test_without_the_package(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    tp.save({"x": ONE}, path)
    assert tp.load(path)["x"].tolist() == tp.asarray(ONE).tolist()
