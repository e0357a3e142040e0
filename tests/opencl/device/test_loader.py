"""Runtimes that pip has installed are found beside the system's drivers."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from tensorplug.dispatch.locks import all_locks
from tensorplug.errors import BackendWarning
from tensorplug_opencl.machine import loader
from tensorplug_opencl.programs import invokers
from tensorplug_opencl.trial import parent


@pytest.fixture
def system(monkeypatch, tmp_path):
    """A folder of the system's drivers, and a loader without earlier requests."""
    monkeypatch.delenv(loader.VENDORS, raising=False)
    monkeypatch.setattr(loader.sys, "platform", "linux")
    monkeypatch.setattr(loader, "SYSTEM", tmp_path / "vendors")
    monkeypatch.setattr(loader, "_asker", None)
    (tmp_path / "vendors").mkdir()
    return tmp_path / "vendors"


@pytest.fixture
def asked(monkeypatch):
    """Return the folder's contents by name, as the loader sees them at each request."""
    seen = []

    def get_platforms():
        folder = os.environ.get(loader.VENDORS)
        files = sorted(Path(folder).iterdir()) if folder else []
        seen.append({file.name: file.read_text() for file in files})
        return []

    monkeypatch.setattr(loader.cl, "get_platforms", get_platforms)
    return seen


def with_intel(monkeypatch, tmp_path):
    library = tmp_path / "lib" / "libintelocl.so"
    library.parent.mkdir()
    library.touch()
    monkeypatch.setattr(loader, "find_installed", lambda: {"intel-opencl-rt": library})
    return library


def test_after_the_systems_own(monkeypatch, tmp_path, system, asked):
    library = with_intel(monkeypatch, tmp_path)
    (system / "nvidia.icd").write_text("libnvidia-opencl.so.1\n")
    loader.list_platforms()
    assert asked == [
        {
            "nvidia.icd": "libnvidia-opencl.so.1\n",
            "tensorplug-intel-opencl-rt.icd": f"{library}\n",
        }
    ]
    assert loader.VENDORS not in os.environ
    loader.list_platforms()
    assert asked[1:] == [{}]  # the loader remembers; the environment is as it was


def test_a_driver_that_the_system_has_is_not_named_twice(monkeypatch, tmp_path, system, asked):
    with_intel(monkeypatch, tmp_path)
    (system / "intel.icd").write_text("/opt/intel/libintelocl.so\n")
    loader.list_platforms()
    assert [sorted(names) for names in asked] == [["intel.icd"]]


def test_a_user_who_names_the_drivers_is_obeyed(monkeypatch, tmp_path, system, asked):
    with_intel(monkeypatch, tmp_path)
    (tmp_path / "own").mkdir()
    monkeypatch.setenv(loader.VENDORS, str(tmp_path / "own"))
    loader.list_platforms()
    assert asked == [{}]
    assert os.environ[loader.VENDORS] == str(tmp_path / "own")


def test_nothing_to_add(monkeypatch, system, asked):
    monkeypatch.setattr(loader, "find_installed", dict)
    loader.list_platforms()
    assert asked == [{}]


def fifo(path):
    os.mkfifo(path)


def with_fifo_library(path):
    library = path.with_suffix(".so")
    os.mkfifo(library)
    path.write_text(f"{library}\n")


def bound_socket(path):
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs here")
@pytest.mark.parametrize("chosen", [True, False])
@pytest.mark.parametrize(
    ("make", "what"),
    [
        (fifo, "it is a FIFO"),
        (with_fifo_library, "its library .*bad.so is a FIFO"),
        (bound_socket, "it is a socket"),
        (Path.mkdir, "it is a folder"),
    ],
)
def test_only_regular_files_reach_the_loader(make, what, chosen, monkeypatch, system, asked):
    """The loader opens a FIFO, and waits forever for somebody who writes into it."""
    monkeypatch.setattr(loader, "find_installed", dict)
    (system / "good.icd").write_text("libgood.so\n")
    (system / "dangling.icd").symlink_to("nowhere")
    make(system / "bad.icd")
    if chosen:
        monkeypatch.setenv(loader.VENDORS, str(system))
    with pytest.warns(BackendWarning, match=f"bad.icd is left out .*: {what}, not a reg") as said:
        loader.list_platforms()
    assert len(said) == 1
    assert said[0].filename == __file__
    assert asked == [{"good.icd": "libgood.so\n"}]
    assert os.environ.get(loader.VENDORS) == (str(system) if chosen else None)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs here")
def test_the_variable_names_a_fifo(monkeypatch, tmp_path, system, asked):
    os.mkfifo(tmp_path / "one.icd")
    monkeypatch.setenv(loader.VENDORS, str(tmp_path / "one.icd"))
    (system / "not_chosen.icd").write_text("libnot.so\n")
    with pytest.warns(BackendWarning, match="one.icd is left out"):
        loader.list_platforms()
    assert asked == [{}]


@pytest.mark.parametrize(
    ("systems", "cache", "expected", "warns"),
    [
        ([], False, "library", False),
        (["nvidia.icd"], False, "nvidia.icd", True),
        (["nvidia.icd"], True, "folder", False),
    ],
)
def test_no_folder_for_temporary_files(
    systems, cache, expected, warns, monkeypatch, tmp_path, system, recwarn
):
    library = with_intel(monkeypatch, tmp_path)
    for name in systems:
        (system / name).write_text("libnvidia-opencl.so.1\n")
    operand = []
    monkeypatch.setattr(
        loader.cl, "get_platforms", lambda: operand.append(os.environ[loader.VENDORS]) or []
    )
    monkeypatch.setattr(loader.tempfile, "tempdir", str(tmp_path / "missing"))
    place = tmp_path / "cache"
    place.mkdir()
    monkeypatch.setattr(loader.cache_folder, "find_folder", lambda: place if cache else None)
    loader.list_platforms()
    if expected == "folder":
        assert Path(operand[0]).parent == place
    else:
        assert operand == [str(library) if expected == "library" else str(system / expected)]
    said = [str(warned.message).partition(",")[0] for warned in recwarn]
    assert said == ["of the OpenCL drivers"] * warns


def test_on_windows_by_names(monkeypatch, tmp_path, system):
    library = with_intel(monkeypatch, tmp_path)
    monkeypatch.setattr(loader.sys, "platform", "win32")
    monkeypatch.setenv(loader.FILENAMES, "C:/other.dll")
    seen = []
    monkeypatch.setattr(
        loader.cl, "get_platforms", lambda: seen.append(os.environ[loader.FILENAMES])
    )
    loader.list_platforms()
    assert seen == [f"C:/other.dll{os.pathsep}{library}"]
    assert os.environ[loader.FILENAMES] == "C:/other.dll"


@pytest.mark.parametrize(
    ("system_name", "name", "there", "found"),
    [
        ("linux", "libintelocl.so", True, True),
        ("linux", "libintelocl.so", False, False),  # its file was deleted
        ("linux", "libother.so", True, False),
        ("win32", "intelocl64.dll", True, True),
    ],
)
def test_where_a_distribution_has_its_driver(
    monkeypatch, tmp_path, system_name, name, there, found
):
    place = tmp_path / name
    if there:
        place.touch()
    file = SimpleNamespace(name=name, locate=lambda: place)
    monkeypatch.setattr(loader.sys, "platform", system_name)
    monkeypatch.setattr(loader, "distribution", lambda _name: SimpleNamespace(files=[file]))
    assert loader.find_installed() == ({"intel-opencl-rt": place.resolve()} if found else {})


def test_a_distribution_that_is_not_installed(monkeypatch):
    def missing(name):
        raise loader.PackageNotFoundError(name)

    monkeypatch.setattr(loader, "distribution", missing)
    assert loader.find_installed() == {}


@pytest.mark.parametrize("module", [loader, parent, invokers])
def test_a_forked_child_gets_the_locks_of_modules_free(module):
    assert any(module._lock is lock for lock in all_locks())
