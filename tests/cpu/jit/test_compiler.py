"""Compiled functions: kept on disk and in memory, refused, and absent."""

from __future__ import annotations

import ctypes
import inspect
import os
import subprocess
import sys

import numpy as np
import pytest

from tensorplug.plugin import BackendWarning, modules_of
from tensorplug_cpu import jit
from tensorplug_cpu.jit.codegen import compiler

pytestmark = pytest.mark.skipif(not compiler.is_available(), reason="llvmlite is not installed")

ADD = """define void @run(ptr %x) {{
  %a = load i64, ptr %x
  %b = add i64 %a, {0}
  store i64 %b, ptr %x
  ret void
}}"""


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv(compiler.CACHE, str(tmp_path / "made" / "at need"))
    return tmp_path / "made" / "at need"


@pytest.fixture
def compiled(monkeypatch):
    """Return the list of what LLVM compiles."""
    texts = []
    compile_ = compiler._Compiler.compile

    def noted(self, text):
        texts.append(text)
        return compile_(self, text)

    monkeypatch.setattr(compiler._Compiler, "compile", noted)
    return texts


def add(number):
    """Compile as another process would, and call."""
    compiler._engines.clear()
    x = np.array([40], np.int64)
    compiler.compile_function(ADD.format(number), "run", [ctypes.c_void_p])(x.ctypes.data)
    return int(x[0])


def test_the_second_process_compiles_nothing(folder, compiled):
    assert [add(2), add(2), add(3)] == [42, 42, 43]
    assert compiled == [ADD.format(2), ADD.format(3)]
    assert len(list(folder.iterdir())) == 2


def test_the_memory_keeps_the_last_ones(monkeypatch, folder, compiled):
    monkeypatch.setenv(compiler.CACHE, "0")
    monkeypatch.setattr(compiler, "_MOST_KEPT", 2)
    compiler._engines.clear()
    functions = [
        compiler.compile_function(ADD.format(number), "run", [ctypes.c_void_p])
        for number in (1, 2, 3, 3, 2, 1)
    ]
    assert len(compiled) == 4  # the first was dropped
    x = np.zeros(1, np.int64)
    for function in functions:  # and yet its code lives
        function(x.ctypes.data)
    assert x[0] == 12
    assert not folder.exists()


@pytest.mark.parametrize("harm", [lambda _: b"", lambda it: it[:-9], lambda it: it[:40] + b"?"])
def test_a_broken_file_is_made_anew(folder, compiled, harm):
    add(2)
    (file,) = folder.iterdir()
    file.write_bytes(harm(file.read_bytes()))
    assert [add(2), add(2)] == [42, 42]
    assert len(compiled) == 2


def test_code_belongs_to_its_text(folder, compiled):
    add(2)
    (two,) = folder.iterdir()
    add(3)
    (three,) = set(folder.iterdir()) - {two}
    two.write_bytes(three.read_bytes())
    assert add(2) == 42
    assert len(compiled) == 3


@pytest.mark.parametrize(
    ("what", "value"), [("get_host_cpu_name", "another"), ("llvm_version_info", (1, 2, 3))]
)
def test_code_belongs_to_its_processor_and_its_compiler(monkeypatch, folder, what, value):
    import llvmlite.binding as llvm

    before = compiler._Compiler().key("text")
    assert compiler._Compiler().key("text") == before
    monkeypatch.setattr(llvm, what, (lambda: value) if isinstance(value, str) else value)
    assert compiler._Compiler().key("text") != before


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no modes of files")
def test_a_file_that_others_may_write_is_not_used(folder, compiled):
    add(2)
    (file,) = folder.iterdir()
    file.chmod(0o622)
    assert add(2) == 42
    assert len(compiled) == 2


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no modes of files")
def test_a_folder_that_others_may_write_is_not_used(folder, compiled):
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.warns(BackendWarning, match=r"is not used to keep compiled loops: other users"):
        assert add(2) == 42
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    "text", ["define void @run(", ADD.format(1).replace("ret void", "ret i64 1"), "no module"]
)
def test_a_refusal(folder, text):
    with pytest.raises(compiler.CompilationError, match=r"^LLVM: "):
        compiler.compile_function(text, "run", [ctypes.c_void_p])
    assert not folder.exists()


PROGRAM = """
import sys
if {hidden}:
    sys.modules["llvmlite"] = None  # as if it were not installed
import numpy as np, tensorplug as tp
loaded = [name for name in sys.modules if name.startswith("llvmlite.")]
assert not loaded, loaded
x = np.linspace(-3, 3, 1 << 16, dtype=np.float32)
with tp.use_backend("cpu"):
    f = tp.compile(lambda x: tp.tanh(x * 2 + 1) - x)
    y = f(tp.asarray(x)).numpy()
assert ("llvmlite.binding" in sys.modules) != {hidden}
assert np.abs(y - (np.tanh(x * 2 + 1) - x)).max() < 1e-6
"""


@pytest.mark.parametrize("hidden", [False, True], ids=["with LLVM", "without LLVM"])
def test_a_program(folder, hidden):
    """It is imported when it is first needed; where it is missing, all works."""
    environment = {**os.environ, "TENSORPLUG_CPU_JIT": "1"}
    subprocess.run(
        [sys.executable, "-c", PROGRAM.format(hidden=hidden)], check=True, env=environment
    )
    assert folder.exists() != hidden


# Parameters of functions of which every version may be kept: there are few, whatever the shapes.
FEW = {
    *("dtype", "kind", "source", "result", "itemsize", "index", "room", "lanes", "vectors"),
    *(
        "epilogue",
        "interpolation",
        "fill_mode",
        "few",
        "least",
        "right",
        "reverse",
        "one",
        "whole",
    ),
    *("adding", "covered", "bias", "side_by_side"),
    "always",  # a bool
}


def test_versions_of_functions_that_depend_on_sizes_are_not_kept_for_good():
    modules = modules_of(jit)
    kept = {
        each
        for module in modules
        for each in vars(module).values()
        if hasattr(each, "cache_info") and each.__module__ == module.__name__
    }
    assert len(kept) > 20
    assert {
        f"{each.__module__}.{each.__name__}": each.cache_info().maxsize
        for each in kept
        if each.cache_info().maxsize is None and set(inspect.signature(each).parameters) - FEW
    } == {
        "tensorplug_cpu.jit.families.gathers._gather_function": None
    }  # widths of `gathers._FIXED`
