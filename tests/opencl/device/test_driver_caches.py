"""Caches of drivers, which are not ours: PoCL does not work without a folder that it can fill."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tensorplug.errors import BackendWarning
from tensorplug_opencl import device
from tensorplug_opencl.machine import driver_caches

NAMES = ("HOME", "XDG_CACHE_HOME", "POCL_CACHE_DIR")


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """An environment in which PoCL's folder is below ``tmp_path``, and so is a file."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    removed = []
    monkeypatch.setattr(driver_caches.atexit, "register", lambda *call: removed.append(call))
    (tmp_path / "file").touch()
    yield monkeypatch
    for function, *arguments in removed:
        function(*arguments)


def test_a_folder_that_can_be_filled_stays_the_drivers(bare, tmp_path):
    driver_caches.provide()
    assert "POCL_CACHE_DIR" not in os.environ
    assert [path.name for path in tmp_path.iterdir()] == ["file"]  # nothing is made for PoCL


@pytest.mark.parametrize(
    ("name", "warnings"), [("HOME", 0), ("XDG_CACHE_HOME", 0), ("POCL_CACHE_DIR", 1)]
)
def test_a_blocked_folder_is_replaced_until_the_process_ends(
    bare, tmp_path, recwarn, name, warnings
):
    bare.setenv(name, str(tmp_path / "file"))
    driver_caches.provide()
    made = Path(os.environ["POCL_CACHE_DIR"])
    assert made.is_dir()
    assert made.parent == tmp_path
    said = [str(each.message) for each in recwarn if each.category is BackendWarning]
    assert len(said) == warnings
    assert all(f"cannot keep files in {tmp_path}/file: Not a directory" in one for one in said)
    driver_caches.provide()  # it is fine now
    assert os.environ["POCL_CACHE_DIR"] == str(made)
    driver_caches._remove(str(made), os.getpid() + 1)  # a forked child's exit
    assert made.is_dir()
    driver_caches._remove(str(made), os.getpid())
    assert not made.exists()


def test_no_device_is_explained_where_nothing_can_be_written(bare, tmp_path):
    def refuse(**_arguments):
        raise OSError(28, "No space left on device")

    bare.setattr(driver_caches.tempfile, "TemporaryFile", refuse)
    driver_caches.provide()
    assert "POCL_CACHE_DIR" not in os.environ
    bare.setattr(device, "available", list)
    with pytest.raises(device.BackendUnavailableError) as caught:
        device.choose(None)
    assert f"{tmp_path}/.cache/pocl/kcache: No space left on device" in str(caught.value)
    assert "Set POCL_CACHE_DIR to a folder that can be written to" in str(caught.value)


PROGRAM = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))
import tensorplug as tp
try:
    tp.set_backend("opencl")
    print((tp.asarray([1.0, 2.0]) * 3).tolist())
except tp.errors.BackendUnavailableError as error:
    # The first where a trial failed, the second where no device is found to try.
    assert "not remembered" in str(error) or "Set POCL_CACHE_DIR" in str(error), error
    assert "File too large" in str(error), error
    print("[3.0, 6.0]")
"""


@pytest.mark.parametrize("most", [0, pytest.param(20_000, marks=pytest.mark.slow)])
def test_no_file_can_grow(target, tmp_path, most):
    """As on a full disk: the backend works, or says what is wrong; nothing is remembered."""
    pytest.importorskip("resource")
    environment = {**os.environ, "TENSORPLUG_OPENCL_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(most)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "[3.0, 6.0]\n"), done.stderr
    assert "Traceback" not in done.stderr
    kept = [*(tmp_path / "cache").glob("*.verdict.json")]
    assert all('"unsound"' not in path.read_text() for path in kept)
