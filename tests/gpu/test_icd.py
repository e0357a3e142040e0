"""Drivers that no .icd file names are found, and named for a run."""

from __future__ import annotations

import icd
import pytest


@pytest.fixture
def machine(tmp_path, monkeypatch):
    system, libraries = tmp_path / "vendors", tmp_path / "lib"
    system.mkdir()
    libraries.mkdir()
    (libraries / "libnvidia-opencl.so.1").touch()
    monkeypatch.delenv(icd.VENDORS, raising=False)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(libraries))
    monkeypatch.setattr(icd, "PLACES", ())
    return system, libraries, tmp_path / "out"


def test_a_library_that_no_file_names_is_named_beside_those_that_are(machine):
    system, libraries, out = machine
    (system / "pocl.icd").write_text("libpocl.so\n")
    variables, notes = icd.register(out, system)
    assert variables == {icd.VENDORS: str(out)}
    assert {path.name: path.read_text() for path in out.iterdir()} == {
        "pocl.icd": "libpocl.so\n",
        "libnvidia-opencl.so.1.icd": f"{libraries}/libnvidia-opencl.so.1\n",
    }
    assert "libnvidia-opencl.so.1" in notes[0]


def test_a_library_that_a_file_names_is_left_alone(machine):
    system, _, out = machine
    (system / "nvidia.icd").write_text("libnvidia-opencl.so.1\n")
    assert icd.register(out, system) == ({}, [])
    assert not out.exists()


def test_a_folder_that_the_user_names_is_left_alone(machine, monkeypatch):
    system, _, out = machine
    monkeypatch.setenv(icd.VENDORS, "/elsewhere")
    assert icd.register(out, system) == ({}, [])


def test_a_machine_without_such_libraries_needs_nothing(machine):
    system, libraries, out = machine
    (libraries / "libnvidia-opencl.so.1").unlink()
    assert icd.register(out, system) == ({}, [])
