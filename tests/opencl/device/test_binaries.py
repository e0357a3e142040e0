"""Programs on disk: the second process builds nothing."""

from __future__ import annotations

import stat
from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pytest
from tests.opencl.conftest import require_device

from tensorplug.errors import BackendWarning
from tensorplug_opencl import device, faults
from tensorplug_opencl.backend import OpenCLBackend
from tensorplug_opencl.faults import BuildError
from tensorplug_opencl.machine import cache_folder, processor
from tensorplug_opencl.machine.limits import Limits
from tensorplug_opencl.programs import binaries, program
from tensorplug_opencl.programs.program import Programs, build, choose_options, read_binary

ADD = """// add {0}
kernel void run(global const int *x, const long x_at, global int *y, const long y_at) {{
  const int i = get_global_id(0);
  if (i < 3) y[y_at + i] = x[x_at + i] + {0};
}}"""


@pytest.fixture
def folder(monkeypatch, tmp_path):
    require_device()  # its verdict is remembered elsewhere
    monkeypatch.delenv("PYOPENCL_NO_CACHE", raising=False)
    monkeypatch.setenv(cache_folder.CACHE, str(tmp_path / "made" / "at need"))
    return tmp_path / "made" / "at need"


@pytest.fixture
def opened():
    """Return a function that opens the device anew, as another process would."""
    require_device()
    actual = device.choose(None)
    made = []

    def open_():
        made.append(OpenCLBackend(actual.device, actual.verdict.limits))
        return made[-1]

    yield open_
    for backend in made:
        backend.close()


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
    assert len(built) == len(list(folder.glob("*"))) == 2  # only binaries


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
    ("name", "value"),
    [(cache_folder.CACHE, "0"), (cache_folder.CACHE, "off"), ("PYOPENCL_NO_CACHE", "1")],
)
def test_without_a_cache(monkeypatch, folder, opened, built, name, value):
    monkeypatch.setenv(name, value)
    for _ in range(2):
        assert add(opened(), 5) == [5, 6, 7]
    assert len(built) == 2
    assert not folder.exists()


def test_a_folder_that_cannot_be_written(folder, opened, built):
    folder.parent.mkdir()
    folder.write_text("a file where the folder should be")
    with pytest.warns(BackendWarning, match="it is not a folder"):
        assert add(opened(), 5) == [5, 6, 7]
    assert add(opened(), 5) == [5, 6, 7]
    assert len(built) == 2


def test_other_options_other_binaries(folder):
    require_device()
    target = device.choose(None).device
    binaries.Binaries(target, ["-w"]).keep("source", b"binary")
    assert binaries.Binaries(target, ["-w"]).find("source") == b"binary"
    assert binaries.Binaries(target, []).find("source") is None


def test_another_processor_other_binaries(monkeypatch, folder):
    """Machines share a home folder, but their drivers compile for different processors."""
    require_device()
    target = device.choose(None).device
    binaries.Binaries(target, []).keep("source", b"binary")
    monkeypatch.setattr(processor, "compute_digest", lambda: "another")
    assert binaries.Binaries(target, []).find("source") is None


def test_a_binary_belongs_to_its_program(folder, opened, built):
    """Two files that were swapped: each is whole, and the other program's."""
    add(opened(), 5)
    (five,) = folder.glob("*.bin")
    add(opened(), 6)
    (six,) = set(folder.glob("*.bin")) - {five}
    contents = five.read_bytes(), six.read_bytes()
    six.write_bytes(contents[0])
    five.write_bytes(contents[1])
    assert add(opened(), 5) == [5, 6, 7]
    assert add(opened(), 6) == [6, 7, 8]
    assert len(built) == 4


def test_a_binary_without_its_kernel_is_not_used(folder, opened, built):
    """The driver loads it without an error: it is the binary of another kernel."""
    backend = opened()
    runtime = backend.runtime
    other = cl.Program(runtime.context, ADD.format(5).replace("void run", "void walk"))
    build(other, choose_options(runtime.device))
    runtime.programs._binaries.keep(ADD.format(5), read_binary(other))
    assert add(opened(), 5) == [5, 6, 7]
    assert built == [ADD.format(5)]


def test_a_binary_that_cannot_be_loaded_again_is_not_kept(monkeypatch, folder, opened, built):
    monkeypatch.setattr(
        program, "read_binary", lambda _program: b"nothing that a driver could load"
    )
    assert add(opened(), 5) == [5, 6, 7]
    assert not list(folder.glob("*"))


def test_a_program_that_never_ran_is_not_kept(folder, opened, built):
    opened().runtime.launch(ADD.format(5), 2, [], 3)
    assert len(built) == 1
    assert not list(folder.glob("*"))


def test_a_driver_whose_binaries_do_not_load_has_none_kept(folder, built):
    require_device()
    target = device.choose(None).device
    for _ in range(2):
        backend = OpenCLBackend(target, Limits(binaries=False))
        assert add(backend, 5) == [5, 6, 7]
        backend.close()
    assert len(built) == 2
    assert not list(folder.glob("*"))


@pytest.mark.parametrize("writable", [stat.S_IWGRP, stat.S_IWOTH])
def test_a_file_that_others_may_write_is_not_used(folder, opened, built, writable):
    add(opened(), 5)
    (file,) = folder.glob("*.bin")
    file.chmod(0o600 | writable)
    assert add(opened(), 5) == [5, 6, 7]
    assert len(built) == 2
    assert stat.S_IMODE(file.stat().st_mode) == 0o600  # it was made anew


def test_a_file_behind_a_link_is_not_used(tmp_path, folder, opened, built):
    add(opened(), 5)
    (file,) = folder.glob("*.bin")
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert add(opened(), 5) == [5, 6, 7]
    assert len(built) == 2


def test_a_compiler_that_leaves_the_kernel_out_is_named(monkeypatch, folder, opened):
    """As PoCL does with a file in its own cache that a killed process left."""
    backend = opened()
    monkeypatch.setattr(program, "has_kernel", lambda _program: False)
    monkeypatch.setenv("POCL_CACHE_DIR", "/cache/of/pocl")
    with pytest.raises(BuildError, match=r"'add 5' without a kernel.* own cache: delete "):
        add(backend, 5)
    assert not list(folder.glob("*"))


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ("run", True),
        ("walk;run", True),
        ("runner", False),
        ("", False),
        (cl.status_code.INVALID_PROGRAM_EXECUTABLE, False),
    ],
)
def test_the_kernels_of_a_program(names, found):
    def get_info(what):
        assert what == cl.program_info.KERNEL_NAMES
        if isinstance(names, str):
            return names
        raise cl.LogicError(cl._cl._ErrorRecord("clGetProgramInfo", names, ""))

    assert program.has_kernel(SimpleNamespace(get_info=get_info)) is found


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("Portable Computing Language", {"POCL_CACHE_DIR": "/pocl"}, "/pocl"),
        ("Portable Computing Language", {"XDG_CACHE_HOME": "/fast"}, "/fast/pocl/kcache"),
        ("Portable Computing Language", {"HOME": "/home/me"}, "/home/me/.cache/pocl/kcache"),
        ("NVIDIA CUDA", {"HOME": "/home/me", "XDG_CACHE_HOME": "/x"}, "/home/me/.nv/ComputeCache"),
        ("rusticl", {"HOME": "/home/me"}, "/home/me/.cache/mesa_shader_cache"),
        ("Acme", {}, "the folder in which the driver of Acme keeps programs"),
    ],
)
def test_the_drivers_own_cache(monkeypatch, platform, variables, expected):
    for name in ("HOME", "XDG_CACHE_HOME", "POCL_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    target = SimpleNamespace(platform=SimpleNamespace(name=f"{platform} "))
    assert str(faults.explain_missing_kernel(target, "device", "exp")).endswith(
        f"delete {expected}"
    )


@pytest.mark.parametrize("code", [cl.status_code.OUT_OF_HOST_MEMORY, -9999])
def test_a_fault_while_loading_keeps_the_binary(monkeypatch, folder, opened, code):
    add(opened(), 5)
    backend = opened()

    def failing(*_arguments):
        raise cl.RuntimeError(cl._cl._ErrorRecord("clCreateProgramWithBinary", code, ""))

    monkeypatch.setattr(cl, "Program", failing)
    with pytest.raises((MemoryError, RuntimeError), match="loading a program"):
        add(backend, 5)
    assert len(list(folder.glob("*.bin"))) == 1


def test_a_kernel_is_freed_with_its_object(folder, opened):
    """Kernels keep programs and contexts alive; pyopencl retains some of them twice."""
    programs = opened().runtime.programs
    for _ in range(2):
        kernel = programs.kernel(ADD.format(5))
        assert kernel.get_info(cl.kernel_info.REFERENCE_COUNT) == 1
        assert kernel.get_info(cl.kernel_info.NUM_ARGS) == 4
