"""``tensorplug new --c``: its library is built, its tests pass, and it certifies."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tensorplug.command_line import new

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or not all(map(shutil.which, ("cmake", "make", "cc", "c++"))),
    reason="needs CMake, make, compilers of C and C++, and POSIX threads",
)
# Calls of each shape of the binding: elementwise, no input, any number of them, two outputs.
KERNELS = "Range,Concat,TopK,Mod"


def run(*command, folder, **environment):
    """Run a command, which must succeed; return what it prints."""
    result = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A project with its library in the package, as an installed wheel has it."""
    folder = tmp_path_factory.mktemp("in-c") / "project"
    names = new.create("acme", "c", folder, "", new.LICENSE).names
    run("cmake", "-S", ".", "-B", "build/plain", folder=folder)
    run("cmake", "--build", "build/plain", "--target", "device", "test_device", folder=folder)
    run("cmake", "--install", "build/plain", "--prefix", "src", folder=folder)
    about = folder / "src/tensorplug_acme-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tensorplug-acme\nVersion: 0.1.0\n"
    )
    (about / "entry_points.txt").write_text(
        f"[tensorplug.backends]\nacme = {names.package}.plugin\n"
    )
    return folder


def test_the_projects_tests_pass(built):
    """Among them: late errors, the limit of memory, a lost device, and round trips."""
    assert "test_device: passed" in run(built / "build/plain/test_device", folder=built)
    pytest_ = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    run(*pytest_, folder=built, PYTHONPATH=str(built / "src"))


def certify(folder, report, *arguments):
    """Return the report of a run of the suite, which must succeed."""
    suite = (sys.executable, "-m", "tensorplug_conformance", "run", "--backend", "acme")
    where = ("--report", str(report), "--jobs", "1")
    run(*suite, *where, *arguments, folder=folder, PYTHONPATH=str(folder / "src"))
    return json.loads((report / "report.json").read_text("utf-8"))


def test_kernels_of_each_form_pass(built, tmp_path):
    report = certify(built, tmp_path, "--level", "2", "--kernels", KERNELS, "--dtypes", "float32")
    passed = {row["kernel"] for row in report["rows"] if row["status"].startswith("pass")}
    assert passed == set(KERNELS.split(","))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_it_certifies_at_level_2(built, tmp_path):
    report = certify(built, tmp_path, "--level", "2")
    assert report["conformant"] is True
    assert {row["status"] for row in report["rows"]} == {"pass native", "unsupported dtype"}


# C++ and Rust --------------------------------------------------------------------------------

HERE = Path(__file__).parent / "in_c"
FLAGS = ("-Wall", "-Wextra", "-Werror", "-fPIC", "-c")
RUST = ("--edition=2021", "--crate-type=staticlib", "-Cpanic=abort")
# How a table of kernels becomes an object, or an archive to link whole.
COMPILERS = {
    "c++": ("c++", "-std=c++17", *FLAGS, "-I{include}", HERE / "kernels.cpp", "-okernels.a"),
    "rustc": ("rustc", *RUST, HERE / "kernels.rs", "-okernels.a"),
}
PROGRAM = """
import tensorplug as tp
tp.set_backend("acme")
print((-tp.asarray([3.0, 4.0])).tolist())
"""


def link(built, folder, compiler, *arguments, include=None):
    """Compile a table of kernels, and link the device of the project to it."""
    include = include or built / "include"
    command = [str(part).format(include=include) for part in COMPILERS[compiler]]
    run(*command, *arguments, folder=folder)
    run("cc", "-std=c11", *FLAGS, "-I", include, built / "src/device.c", folder=folder)
    whole = ("-Wl,--whole-archive", "kernels.a", "-Wl,--no-whole-archive")
    objects = whole if compiler == "rustc" else ("kernels.a",)
    library = folder / "libother.so"
    needed = ("device.o", "-lpthread", "-lm", "-ldl")
    run("c++", "-shared", "-o", library, *objects, *needed, folder=folder)
    return {
        "PYTHONPATH": str(built / "src"),
        "ACME_LIBRARY": str(library),
        "TENSORPLUG_FALLBACK": "error",
    }


@pytest.mark.skipif(sys.platform != "linux", reason="the options of GNU's linker")
@pytest.mark.parametrize("compiler", COMPILERS)
def test_kernels_in_another_language(compiler, built, tmp_path):
    """A table in C++ or Rust takes the place of that in C, and the binding reads it."""
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    environment = link(built, tmp_path, compiler)
    printed = run(sys.executable, "-c", PROGRAM, folder=tmp_path, **environment)
    assert printed == "[1.5, 2.0]\n"


# A row, and what is wrong with it.
WRONG = {
    '{"Negg", 1, halve, ""}': "tp_kernels has 'Negg', which is no kernel",
    '{"Neg", 2, halve, ""}': "Neg has 1 inputs, not 2",
    '{"Concat", 2, halve, "axis"}': "Concat has -1 inputs, not 2",
    '{"Neg", 1, halve, "axis"}': "has the parameters (x, *, axis, backend, out)",
}


@pytest.mark.parametrize("row", WRONG)
def test_a_row_that_does_not_fit_its_spec_is_refused(row, built, tmp_path):
    environment = link(built, tmp_path, "c++", f"-DROW={row}")
    with pytest.raises(AssertionError, match=re.escape(WRONG[row])):
        run(sys.executable, "-c", PROGRAM, folder=tmp_path, **environment)


def test_a_library_of_another_version_is_refused(built, tmp_path):
    text = (built / "include/tensorplug.h").read_text("utf-8")
    assert text.count("TP_VERSION = 1 ") == 1
    (tmp_path / "tensorplug.h").write_text(text.replace("TP_VERSION = 1 ", "TP_VERSION = 2 "))
    environment = link(built, tmp_path, "c++", include=tmp_path)
    with pytest.raises(AssertionError, match=r"built with version 2 of tensorplug\.h, and this"):
        run(sys.executable, "-c", PROGRAM, folder=tmp_path, **environment)


# A wheel -------------------------------------------------------------------------------------


@pytest.mark.packaging
def test_a_wheel_is_for_any_python_of_one_platform(tmp_path):
    pytest.importorskip("scikit_build_core")
    new.create("acme", "c", tmp_path / "project", "", new.LICENSE)
    wheel = ("pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", tmp_path)
    run(sys.executable, "-m", *wheel, ".", folder=tmp_path / "project")
    (path,) = tmp_path.glob("*.whl")
    assert re.fullmatch(r"tensorplug_acme-0\.1\.0-py3-none-(linux|macosx)_.*\.whl", path.name)
    held = {name for name in ZipFile(path).namelist() if ".dist-info/" not in name}
    modules = ("__init__", "backend", "kernels", "library", "plugin")
    files = ("py.typed", "tensorplug.h", "libdevice.so", *(f"{name}.py" for name in modules))
    assert held == {f"tensorplug_acme/{name}" for name in files}
