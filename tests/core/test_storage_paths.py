"""Paths of files, and files that change or are left behind while others work on them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError

from . import sharing


@pytest.fixture(autouse=True)
def engine():
    with sharing.engines.using(sharing.make()):
        yield


USES = {"save": lambda path: tp.save({"x": [1.0, 2.0]}, path), "load": tp.load}


class BytesPath:
    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return os.fsencode(self.path)


@pytest.mark.parametrize("kind", [str, os.fsencode, Path, BytesPath])
def test_paths(kind, tmp_path):
    path = kind(tmp_path / "d\xe4t\xe4")
    tp.save({"x": [1.0, 2.0]}, path)
    assert tp.load(path)["x"].tolist() == [1, 2]
    assert [item.name for item in tmp_path.iterdir()] == ["d\xe4t\xe4"]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(
    ("path", "message"),
    [
        (None, "path must be text, bytes or an os.PathLike, got NoneType"),
        (3, "path must be text, bytes or an os.PathLike, got int"),
        ("a\0b", r"path must not contain a null character, got 'a\\x00b'"),
        (b"a\0b", r"path must not contain a null character, got 'a\\x00b'"),
    ],
)
def test_what_is_no_path(use, path, message):
    with pytest.raises(ArgumentError, match=f"^{use}: {message}$"):
        USES[use](path)


# Loads a file that another program shortens: after the header was read, so that it is sound.
SHORTENED = """
import os, sys
import numpy as np
import tensorplug as tp
from tensorplug.tensors import {module} as module

path, size = sys.argv[1], int(sys.argv[2])
found = {owner}.{name}

def shortened(*arguments):
    result = found(*arguments)
    os.truncate(path, size)
    return result

{owner}.{name} = {kind}(shortened)
try:
    tp.load(path)
except tp.errors.FileFormatError as error:
    print(error)
"""
POINTS = {
    "after the header was read": ("file_format", "module.Header", "read", "staticmethod"),
    "before the first tensor is read": ("file_trees", "module.Record", "of", "staticmethod"),
}


@pytest.mark.parametrize("size", [0, 4096])
@pytest.mark.parametrize("point", POINTS)
def test_a_file_that_shrinks_while_it_is_read(tmp_path, point, size):
    path = tmp_path / "model.safetensors"
    tp.save({"x": np.ones(1 << 20, np.float32)}, path)
    module, owner, name, kind = POINTS[point]
    script = SHORTENED.format(module=module, owner=owner, name=name, kind=kind)
    ended = subprocess.run(
        [sys.executable, "-c", script, str(path), str(size)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == (f"load: {path} is not a valid safetensors file: it ends within 'x'\n")


# Saves and stops where the data was written and the name is not yet there.
KILLED = """
import os, signal, sys
import tensorplug as tp
from tensorplug.tensors import scratch_files

def stop(descriptor):
    print("written", flush=True)
    signal.pause()

os.fsync = stop
tp.save({"x": [1.0] * 1000}, sys.argv[1])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there, files are not locked so")
def test_scratch_files_of_killed_processes_are_removed(tmp_path):
    path = tmp_path / "model.safetensors"
    tp.save({"x": [0.0]}, path)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    others = [tmp_path / name for name in (".tensorplug-0.tmp", ".tensorplug-zz.tmp", "x.tmp")]
    for other in others:
        other.touch()
    link = tmp_path / ".tensorplug-0123456789abcdef.tmp"
    link.symlink_to(path)
    kept = {path, link, *others}

    def scratch():
        return set(tmp_path.iterdir()) - kept

    try:
        for writer in writers:
            assert writer.stdout.readline() == "written\n"
        assert len(scratch()) == 3
        tp.save({"x": [1.0]}, path)
        assert len(scratch()) == 3  # they are alive
        for writer in writers[:2]:
            writer.kill()
            assert writer.wait() == -signal.SIGKILL
        assert tp.load(path)["x"].tolist() == [1.0]
        assert len(scratch()) == 3
        tp.save({"x": [2.0]}, path)
        assert len(scratch()) == 1
        assert tp.load(path)["x"].tolist() == [2.0]
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
            writer.stdout.close()
    tp.save({"x": [3.0]}, path)
    assert scratch() == set()
    assert kept <= set(tmp_path.iterdir())
