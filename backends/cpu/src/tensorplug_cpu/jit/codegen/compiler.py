"""From LLVM's intermediate representation to functions that ctypes calls.

Object code is kept on disk by what it was compiled from and for, so the next process compiles
nothing. In memory, the code of a function lives as long as the function, and that of the last
ones used a while longer.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections import OrderedDict
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import BuildNotice, disk_cache
from tensorplug_cpu.jit.codegen import processor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager


CACHE: Final = "TENSORPLUG_CPU_CACHE"
_FOLDER: Final = disk_cache.CacheFolder(
    CACHE, "tensorplug-cpu", "compiled loops", ("tensorplug_cpu",)
)
_NOTICE: Final = BuildNotice("cpu", "loops")
_FORMAT: Final = "2"
MOST_FUNCTIONS: Final = 256  # of one kind, for the sizes that their texts depend on
_MOST_KEPT: Final = 1024  # modules in memory that no function may need; 100 KiB each

# No lock: two threads that need one function may both compile it, and either one is right. Calls
# of LLVM itself have llvmlite's lock. A dictionary's steps are atomic.
_engines: Final[OrderedDict[tuple[str, str], tuple[Any, int]]] = OrderedDict()


class CompilationError(Exception):
    """LLVM refuses a module."""


@cache
def is_available() -> bool:
    """Return whether llvmlite can be imported."""
    try:
        import llvmlite.binding  # noqa: F401  # an extra
    except ImportError:
        return False
    return True


def compile_function(text: str, name: str, arguments: Sequence[Any]) -> Callable[..., None]:
    """Return the function ``name`` of a module, given as text.

    ``arguments``: their ctypes, such as ``ctypes.c_void_p``. The function returns nothing, and
    runs without the interpreter's lock.

    Raises:
        CompilationError: LLVM finds the text wrong, or cannot compile it.

    """
    _NOTICE.using(text)
    entry = _engines.get((text, name))
    if entry is None:
        engine = _load(_find_object(text))
        entry = engine, engine.get_function_address(name)
        _engines[text, name] = entry
        while len(_engines) > _MOST_KEPT:
            _engines.popitem(last=False)
    engine, address = entry
    function = ctypes.CFUNCTYPE(None, *arguments)(address)
    function.engine = engine  # type: ignore[attr-defined]  # keeps the code alive
    return function


class _Compiler:
    """LLVM for this processor, and its object code on disk."""

    def __init__(self) -> None:
        import llvmlite
        import llvmlite.binding as llvm  # an extra

        _wait_before_fork(llvm.ffi.lib._lock)
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.llvm = llvm
        name, features = llvm.get_host_cpu_name(), processor.flags()
        self._cpu = {"cpu": name, "features": features, "opt": 3}
        self._target = llvm.Target.from_default_triple()
        version = ".".join(map(str, llvm.llvm_version_info))
        parts = (_FORMAT, llvmlite.__version__, version, llvm.get_default_triple(), name, features)
        self._digest = hashlib.sha256("\0".join(parts).encode())

    def machine(self) -> Any:
        """Return a new target machine; each belongs to one engine."""
        return self._target.create_target_machine(**self._cpu)

    def key(self, text: str) -> str:
        """Return the key of a module, as compiled here."""
        key = self._digest.copy()
        key.update(text.encode())
        return key.hexdigest()

    def compile(self, text: str) -> bytes:
        """Return the object code of a module.

        Raises: as ``compile_function``.
        """
        llvm = self.llvm
        machine = self.machine()
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.slp_vectorization = True
        # A tile fills the registers, so a second one beside it does not fit: unrolled, as LLVM
        # does for Zen 4 and Zen 5, products of matrices took 2.5 times as long.
        options.loop_unrolling = False
        passes = llvm.create_pass_builder(machine, options)
        try:
            module = llvm.parse_assembly(text)
            module.verify()  # what is wrong may crash the passes
            passes.getModulePassManager().run(module, passes)
            return bytes(machine.emit_object(module))
        except RuntimeError as error:
            raise CompilationError(f"LLVM: {error}") from error


def _wait_before_fork(lock: AbstractContextManager[Any]) -> None:
    """Let no process fork while a thread is inside LLVM, which ``lock`` says.

    The child would wait for that thread, which it does not have, and LLVM's tables could be half
    written.
    """
    if not hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
        return

    def leave() -> None:
        lock.__exit__(None, None, None)

    os.register_at_fork(before=lock.__enter__, after_in_parent=leave, after_in_child=leave)


_compiler: Final = cache(_Compiler)
_files: Final = cache(disk_cache.SealedFiles)  # by folder


def _find_object(text: str) -> bytes:
    """Return the object code of a module, from disk or from LLVM."""
    compiler = _compiler()
    folder = _FOLDER.find()
    files = _files(folder)
    key = compiler.key(text)
    entry = files.find(key)
    if entry is None:
        with _NOTICE.building(kept=folder is not None):
            entry = compiler.compile(text)
        files.keep(key, entry)
    return entry


def _load(code: bytes) -> Any:
    """Return an engine with the functions of object code."""
    compiler = _compiler()
    engine = compiler.llvm.create_mcjit_compiler(
        compiler.llvm.parse_assembly(""), compiler.machine()
    )
    engine.add_object_file(compiler.llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine
