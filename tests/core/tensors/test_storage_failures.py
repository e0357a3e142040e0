"""Files of tensors where something fails: the old file stays, and the error says why."""

from __future__ import annotations

import json
import os
import stat
import struct
import subprocess
import sys

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import (
    ArgumentError,
    BackendMemoryError,
    DisposedError,
    DTypeError,
    ShapeError,
)

pytestmark = pytest.mark.usefixtures("sharing_engine")


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


def test_dtypes_that_the_device_does_not_have(path, sharing_engine):
    tp.save({"x": np.ones(2)}, path)
    sharing_engine.devices.source.dtypes["memory"] = frozenset({tp.float32})
    with pytest.raises(DTypeError, match=r"load: 'x': float64\[2\] is not possible on backend"):
        tp.load(path, device="memory")


def test_no_room_on_the_device(path, sharing_engine):
    tp.save({"x": np.ones(2)}, path)
    sharing_engine.open("memory").backend.room = 8
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
