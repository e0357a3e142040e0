"""Groups through the system's C compiler: on NumPy arrays, by several threads.

The compiler is ``cc``, or the one that the environment variable ``CC`` names, with the flags of
``CFLAGS``. What it makes is kept on disk.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
import threading
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import BuildNotice, disk_cache
from tensorplug_loops.dialects import c
from tensorplug_loops.schedule import plan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import Group
    from tensorplug_loops.machine import Machine
    from tensorplug_loops.schedule import Launch, Program

    NumPyArray = np.ndarray[Any, Any]

CACHE: Final = "TENSORPLUG_LOOPS_CACHE"
SHARED_WORK: Final = 1 << 20  # instructions from which other threads help
_CHUNKS: Final = 8  # for each thread
_FOLDER: Final = disk_cache.CacheFolder(
    CACHE, "tensorplug-loops", "compiled loops", ("tensorplug_loops",)
)
_NOTICE: Final = BuildNotice("loops", "loops")
_OPTIMIZED: Final = ("-std=c99", "-O3", "-fPIC", "-shared")
_OWN: Final = ("-march=native",)  # code for this processor, where the compiler takes the word


class CompilationError(Exception):
    """There is no C compiler, or it refuses a text."""


@cache
def command() -> tuple[str, ...]:
    """Return the C compiler's command.

    Raises:
        CompilationError: there is none.

    """
    words = shlex.split(os.environ.get("CC", "cc"))
    if not words or shutil.which(words[0]) is None:
        raise CompilationError(f"the C compiler {' '.join(words)!r} is not found; set CC")
    return (*words, *_OPTIMIZED, *c.FLAGS, *shlex.split(os.environ.get("CFLAGS", "")))


@cache
def _identity() -> str:
    """Return what distinguishes compilers: the command, its version, and the processor's macros.

    The latter are those of compilers like GNU's.
    """
    words = command()
    version = subprocess.run([words[0], "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    machine = os.uname().machine if hasattr(os, "uname") else ""
    return "\0".join([*words, version.stdout, machine, *_macros()])


@cache
def _macros() -> tuple[str, ...]:
    """Return the names and values that the compiler defines for this processor, if it says so."""
    words = [*command(), *_OWN]
    done = subprocess.run(  # noqa: S603
        [*words, "-dM", "-E", "-x", "c", os.devnull], capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines() if done.returncode == 0 else []
    return tuple(line.removeprefix("#define ") for line in lines)


@cache
def describe() -> Machine:
    """Return the description of this processor, as far as its C compiler knows it.

    Compilers like GNU's have vectors, and make code for the processor's own instructions.
    """
    names = {line.split()[0] for line in _macros()}
    if "__GNUC__" not in names:
        return c.MACHINE
    size = 64 if "__AVX512F__" in names else 32 if "__AVX__" in names else 16
    many = {"__AVX512F__", "__aarch64__"} & names
    return replace(c.MACHINE, tile_bytes=size, registers=32 if many else 16)


def compile_text(text: str) -> Callable[..., None]:
    """Return the function ``run`` of a C text; it runs without the interpreter's lock.

    Raises:
        CompilationError: there is no compiler, it refuses the text, or there is no place for
            temporary files.

    """
    _NOTICE.using(text)  # explain shows it
    return _built(text)


@cache
def _built(text: str) -> Callable[..., None]:
    try:
        return _build(text)
    except OSError as error:  # there is no folder for temporary files, or it is full
        raise CompilationError(
            f"a library cannot be written to a temporary file or be loaded: {error}. Set TMPDIR "
            "to a folder that can be written to"
        ) from error


def _build(text: str) -> Callable[..., None]:
    words = [*command(), *(_OWN if _macros() else ())]
    key = hashlib.sha256(f"{_identity()}\0{text}".encode()).hexdigest()
    folder = _FOLDER.find()
    files = disk_cache.SealedFiles(folder)
    code = files.find(key)
    with tempfile.TemporaryDirectory(prefix="tensorplug-") as place:
        library = Path(place, "loops.so")
        if code is None:
            source = Path(place, "loops.c")
            source.write_text(text, encoding="utf-8")
            with _NOTICE.building(kept=folder is not None):
                done = subprocess.run(  # noqa: S603
                    [*words, "-o", str(library), str(source), "-lm"],
                    capture_output=True,
                    text=True,
                    check=False,
                )
            if done.returncode:
                raise CompilationError(f"{words[0]}: {done.stderr.strip()}")
            files.keep(key, library.read_bytes())
        else:
            library.write_bytes(code)
        function = ctypes.CDLL(str(library)).run
    function.restype = None
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
    return function


class Run:
    """A group, compiled: a function of its inputs' arrays that returns its outputs'.

    ``source``: the texts of its kernels.
    """

    def __init__(self, program: Program, threads: int) -> None:
        self._program, self._threads = program, threads
        texts = [c.write(launch.kernel) for launch in program.launches]
        self.source = "\n".join(dict.fromkeys(texts))
        self._functions = [compile_text(text) for text in texts]

    def __call__(self, *arrays: NumPyArray) -> list[NumPyArray]:
        """Compute the group."""
        program = self._program
        outputs = [np.empty(type_.shape, type_.dtype.numpy) for type_ in program.outputs]
        buffers = [*map(np.ascontiguousarray, arrays), *outputs]
        buffers += [np.empty(size, dtype.numpy) for dtype, size in program.temporaries]
        for launch, function in zip(program.launches, self._functions, strict=True):
            run_items(launch, function, [buffers[at] for at in launch.arrays], self._threads)
        return outputs


def run_items(
    launch: Launch,
    function: Callable[..., None],
    buffers: Sequence[NumPyArray],
    threads: int | None = None,
) -> None:
    """Let threads do the items of a launch by its compiled function; None for one per core."""
    pointers = (ctypes.c_void_p * len(buffers))(*(each.ctypes.data for each in buffers))
    numbers = (ctypes.c_int64 * len(launch.numbers))(*launch.numbers)
    items = launch.items
    threads = min(threads or os.cpu_count() or 1, items)
    if threads == 1 or items * launch.cost < SHARED_WORK:
        function(pointers, numbers, 0, items)
        return
    size = max(1, items // (threads * _CHUNKS))
    chunks = count(0, size)

    def work() -> None:
        for first in chunks:
            if first >= items:
                return
            function(pointers, numbers, first, min(first + size, items))

    others = [threading.Thread(target=work) for _ in range(threads - 1)]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        thread.join()


def compile_group(
    group: Group, *, threads: int | None = None, machine: Machine | None = None
) -> Run | None:
    """Return a function that computes a group; None to decline it.

    Args:
        group: without complex numbers, which are declined.
        threads: how many run; as many as there are cores if None.
        machine: what the schedule is for; None for this processor.

    Raises:
        CompilationError: there is no compiler, or it refuses a text.

    """
    program = plan(group, machine or describe())
    return None if program is None else Run(program, threads or os.cpu_count() or 1)
