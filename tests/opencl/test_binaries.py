"""Programs on disk: the second process builds nothing."""

from __future__ import annotations

import os

import numpy as np
import pyopencl as cl
import pytest

from tensorplug_opencl import binaries
from tensorplug_opencl.backend import OpenCLBackend
from tensorplug_opencl.program import Programs

from .conftest import require_device

ADD = """// add {0}
kernel void run(global const int *x, const long x_at, global int *y, const long y_at) {{
  const int i = get_global_id(0);
  if (i < 3) y[y_at + i] = x[x_at + i] + {0};
}}"""


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.delenv("PYOPENCL_NO_CACHE", raising=False)
    monkeypatch.setenv(binaries.CACHE, str(tmp_path / "made" / "at need"))
    return tmp_path / "made" / "at need"


@pytest.fixture
def opened():
    """Return a function that opens the device anew, as another process would."""
    require_device()
    made = []

    def open_():
        made.append(OpenCLBackend.open(None))
        return made[-1]

    yield open_
    for each in made:
        each.close()


def add(backend, number):
    x = backend.from_host(np.arange(3, dtype=np.int32))
    y = backend.runtime.empty(x.type)
    backend.runtime.launch(ADD.format(number), 2, [], 3)(x, y)
    return backend.to_host(y).tolist()


@pytest.fixture
def built(monkeypatch):
    """Return the list of what the compiler is asked for."""
    sources = []
    build = Programs._build

    def noted(self, source):
        sources.append(source)
        return build(self, source)

    monkeypatch.setattr(Programs, "_build", noted)
    return sources


def test_the_second_process_builds_nothing(folder, opened, built):
    assert add(opened(), 5) == [5, 6, 7]
    assert add(opened(), 5) == [5, 6, 7]
    assert built == [ADD.format(5)]
    assert add(opened(), 6) == [6, 7, 8]
    assert len(built) == len(list(folder.glob("*"))) == 2


@pytest.mark.parametrize("harm", [lambda _: b"", lambda it: it[:-9], lambda it: it[:40] + b"?"])
def test_a_broken_file_is_made_anew(folder, opened, built, harm):
    add(opened(), 5)
    (file,) = folder.glob("*.bin")
    whole = file.read_bytes()
    file.write_bytes(harm(whole))
    assert add(opened(), 5) == [5, 6, 7]
    assert len(built) == 2
    assert binaries.Binaries(opened().runtime.device, []).find("other") is None
    assert add(opened(), 5) == [5, 6, 7]
    assert len(built) == 2


def test_a_binary_that_the_driver_refuses_is_made_anew(folder, opened, built):
    """As after an update of the driver that does not show in its version."""
    programs = opened().runtime.programs
    programs._binaries.keep(ADD.format(5), b"what another compiler made")
    assert add(opened(), 5) == [5, 6, 7]
    assert add(opened(), 5) == [5, 6, 7]
    assert len(built) == 1


@pytest.mark.parametrize(
    ("name", "value"), [(binaries.CACHE, "0"), (binaries.CACHE, "off"), ("PYOPENCL_NO_CACHE", "1")]
)
def test_without_a_cache(monkeypatch, folder, opened, built, name, value):
    monkeypatch.setenv(name, value)
    for _ in range(2):
        assert add(opened(), 5) == [5, 6, 7]
    assert len(built) == 2
    assert not folder.exists()


def test_where_nobody_may_write(folder, opened, built):
    folder.parent.mkdir()
    folder.write_text("a file where the folder should be")
    for _ in range(2):
        assert add(opened(), 5) == [5, 6, 7]
    assert len(built) == 2


def test_other_options_other_binaries(folder):
    require_device()
    device = OpenCLBackend.open(None).runtime.device
    binaries.Binaries(device, ["-w"]).keep("source", b"binary")
    assert binaries.Binaries(device, ["-w"]).find("source") == b"binary"
    assert binaries.Binaries(device, []).find("source") is None


def test_the_oldest_go_first(tmp_path):
    for age in range(8):
        file = tmp_path / f"{age}.bin"
        file.write_bytes(bytes(100))
        os.utime(file, (1e9 - age, 1e9 - age))
    binaries._prune(tmp_path, 800)
    assert len(list(tmp_path.iterdir())) == 8
    binaries._prune(tmp_path, 799)
    assert sorted(each.name for each in tmp_path.iterdir()) == [f"{age}.bin" for age in range(5)]


@pytest.mark.parametrize(
    ("system", "variables", "expected"),
    [
        ("linux", {"HOME": "/home/me"}, "/home/me/.cache"),
        ("linux", {"HOME": "/home/me", "XDG_CACHE_HOME": "/fast"}, "/fast"),
        ("darwin", {"HOME": "/Users/me"}, "/Users/me/Library/Caches"),
        ("win32", {"LOCALAPPDATA": "/Local"}, "/Local"),
    ],
)
def test_the_place(monkeypatch, system, variables, expected):
    for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", binaries.CACHE, "PYOPENCL_NO_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(binaries.sys, "platform", system)
    assert binaries.place().as_posix() == f"{expected}/tensorplug-opencl"


@pytest.mark.parametrize("code", [cl.status_code.OUT_OF_HOST_MEMORY, -9999])
def test_a_fault_while_loading_is_no_broken_binary(monkeypatch, folder, opened, code):
    add(opened(), 5)
    backend = opened()

    def program(*_given):
        raise cl.RuntimeError(cl._cl._ErrorRecord("clCreateProgramWithBinary", code, ""))

    monkeypatch.setattr(cl, "Program", program)
    with pytest.raises((MemoryError, RuntimeError), match="loading a program"):
        add(backend, 5)
    assert len(list(folder.glob("*.bin"))) == 1
