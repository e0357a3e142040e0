"""``tensorplug new --c``: its library is built, its tests pass, and it certifies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from tensorplug.command_line import new

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or not all(map(shutil.which, ("cmake", "cc", "c++"))),
    reason="needs CMake, a C compiler and POSIX threads",
)
# Calls of each shape of the binding: elementwise, no input, any number of them, two outputs.
KERNELS = "Add,Range,Concat,TopK"


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
    report = certify(built, tmp_path, "--level", "2", "--kernels", KERNELS)
    passed = {row["kernel"] for row in report["rows"] if row["status"].startswith("pass")}
    assert passed == set(KERNELS.split(","))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_it_certifies_at_level_2(built, tmp_path):
    report = certify(built, tmp_path, "--level", "2")
    assert report["conformant"] is True
    assert {row["status"] for row in report["rows"]} == {"pass native", "unsupported dtype"}


# C++, and sanitizers ------------------------------------------------------------------------

IN_CPP = """
#include "tensorplug.h"
static_assert(sizeof(tp_dtype) == 4 && sizeof(tp_tensor) == 48, "as DLDataType and DLTensor are");
static tp_status halve(const tp_call *call) {
    const tp_tensor &x = call->inputs[0];
    auto *from = static_cast<const float *>(x.data);
    for (int64_t i = 0; i < x.shape[0]; i++)
        static_cast<float *>(call->outputs[0].data)[i] = from[i] / 2;
    return TP_OK;
}
const tp_kernel *tp_kernels(void) {
    static const tp_kernel kernels[] = {{"Neg", 1, halve, ""}, {nullptr, 0, nullptr, nullptr}};
    return kernels;
}
const tp_dtype *tp_dtypes(void) {
    static const tp_dtype dtypes[] = {
        {TP_BOOL, 8, 1}, {TP_INT, 32, 1}, {TP_FLOAT, 32, 1}, {0, 0, 0}};
    return dtypes;
}
"""


def test_kernels_in_cpp(built, tmp_path):
    """A table of kernels in C++ takes the place of that in C, and the binding reads it."""
    (tmp_path / "kernels.cpp").write_text(IN_CPP)
    flags = ("-Wall", "-Wextra", "-Werror", "-fPIC", "-I", built / "include", "-c")
    run("c++", "-std=c++17", *flags, "kernels.cpp", folder=tmp_path)
    run("cc", "-std=c11", *flags, built / "src/device.c", folder=tmp_path)
    library = tmp_path / "libother.so"
    objects = ("kernels.o", "device.o", "-lpthread", "-lm")
    run("c++", "-shared", "-o", library, *objects, folder=tmp_path)
    program = (
        "import tensorplug as tp; tp.set_backend('acme'); x = tp.asarray([3.0, 4.0]);"
        "print((-x).tolist(), tp.explain('Add').how)"
    )
    printed = run(
        *(sys.executable, "-c", program),
        folder=tmp_path,
        PYTHONPATH=str(built / "src"),
        ACME_LIBRARY=str(library),
        TENSORPLUG_FALLBACK="error",
    )
    assert printed.split("\n")[0] == "[1.5, 2.0] None"
