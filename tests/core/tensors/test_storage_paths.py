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
from tensorplug.errors import ArgumentError, BackendMemoryError
from tensorplug.tensors import scratch_files

pytestmark = pytest.mark.usefixtures("sharing_engine")


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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
@pytest.mark.parametrize("use", USES)
def test_a_pipe_is_refused_at_once(use, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(ArgumentError, match=rf"^{use}: {path} is not a regular file$"):
        USES[use](path)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems promise any memory")
def test_a_sparse_file_that_claims_more_than_the_memory(tmp_path):
    path, size = tmp_path / "model.safetensors", 1 << 40
    header = b'{"x":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}' % (size // 4, size)
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    os.truncate(path, 8 + len(header) + size)
    with pytest.raises(
        BackendMemoryError,
        match=rf"load: 'x' in {path} is float32\[{size // 4}\], {size} bytes: the host does not "
        r"have so much memory, of which \d+ bytes are available",
    ):
        tp.load(path)


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


@pytest.mark.skipif(sys.platform == "win32", reason="there, files are not locked so")
def test_a_new_scratch_file_of_the_name_of_an_old_one_is_kept(tmp_path, monkeypatch):
    """Two processes remove an old one, and a writer comes between them."""
    path = tmp_path / ".tensorplug-0123456789abcdef.tmp"
    path.write_text("old", encoding="utf-8")
    flock = scratch_files.fcntl.flock

    def second(descriptor, how):
        flock(descriptor, how)
        if how & scratch_files.fcntl.LOCK_NB:
            path.unlink()
            path.write_text("new", encoding="utf-8")

    monkeypatch.setattr(scratch_files.fcntl, "flock", second)
    tp.save({"x": [1.0]}, tmp_path / "model.safetensors")
    assert path.read_text("utf-8") == "new"


# Saves again and again, or loads until the input ends. Locks are slow, so others come between.
BUSY = """
import fcntl, random, select, sys, time
import tensorplug as tp

use, path, number = sys.argv[1], sys.argv[2], float(sys.argv[3])
flock = fcntl.flock

def slow(descriptor, how):
    time.sleep(random.random() * 0.004)
    flock(descriptor, how)
    time.sleep(random.random() * 0.004)

fcntl.flock = slow
if use == "save":
    for _ in range(40):
        tp.save({"x": [number] * 5000}, path)
else:
    while not select.select([sys.stdin], [], [], 0)[0]:
        assert tp.load(path)["x"].shape == (5000,)
        assert len(set(tp.load(path)["x"].tolist())) == 1
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there, an open file cannot be replaced")
def test_writers_and_readers_of_one_path_at_once(tmp_path):
    path = tmp_path / "model.safetensors"
    tp.save({"x": [9.0] * 5000}, path)

    def start(use, number):
        return subprocess.Popen(
            [sys.executable, "-c", BUSY, use, str(path), str(number)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    readers = [start("load", number) for number in range(2)]
    writers = [start("save", number) for number in range(5)]
    said = [writer.communicate(timeout=120)[1] for writer in writers]
    said += [reader.communicate("end", timeout=120)[1] for reader in readers]
    assert said == [""] * 7
    assert list(tmp_path.iterdir()) == [path]


# Saves in one child after another, each killed by SIGKILL one line of the code later; then in
# children that are killed after a while, wherever they are. Prints what is found each time.
KILLED_ANYWHERE = """
import os, pathlib, signal, sys, time
import numpy as np
import tensorplug as tp

path, way, size = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
traced = ("files.py", "file_format.py", "scratch_files.py")

def save(value):
    tp.save({"x": np.full(size, value, np.float32)}, path)

def save_killed_at(last):
    lines = 0

    def trace(frame, event, _argument):
        nonlocal lines
        if not frame.f_code.co_filename.endswith(traced):
            return None
        lines += event == "line"
        if lines > last:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)
    save(1)
    sys.settrace(None)

def save_often():
    while True:
        save(1)

save(0)
for step in range(10_000):
    child = os.fork()
    if not child:
        save_killed_at(step) if way == "lines" else save_often()
        os._exit(0)
    if way == "times":
        time.sleep(step * 0.001)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    scratch = len(list(path.parent.glob(".*")))
    print(step, status, scratch, sorted(set(tp.load(path)["x"].tolist())), flush=True)
    if not status or (way, step) == ("times", 60):
        break
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize(
    ("way", "size"), [("lines", 3), pytest.param("times", 1 << 20, marks=pytest.mark.slow)]
)
def test_a_killed_save_leaves_a_whole_file(way, size, tmp_path):
    path = tmp_path / "model.safetensors"
    ended = subprocess.run(
        [sys.executable, "-c", KILLED_ANYWHERE, str(path), way, str(size)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    found = [line.split(" ", 3) for line in ended.stdout.splitlines()]
    assert len(found) > 50
    values = [value for *_, value in found]
    assert set(values) == {"[0.0]", "[1.0]"}  # it was killed before and after
    assert values == sorted(values)
    assert max(int(scratch) for _, _, scratch, _ in found) == 1  # they do not pile up
    tp.save({"x": [2.0]}, path)
    assert list(tmp_path.iterdir()) == [path]
