"""The process in which a driver is tried, and which then builds programs for its parent.

Requests are lines of JSON. The first ones are about the trial: the facts of the ``device``, the
stages that ``passed`` and ``failed`` earlier, and ``rest``: whether to try those that do not come
first. The answers say when each stage begins and ends, so a stage without an end is the one that
crashed. Later requests have the ``source`` of a program, the ``key`` and the ``story`` of the
attempt to build it; the answer is its binary.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import warnings
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyopencl as cl

from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.machine import attempts, features, identity, loader
from tensorplug_opencl.memory import shared_memory
from tensorplug_opencl.programs import invokers
from tensorplug_opencl.programs.program import build, choose_options, read_binary
from tensorplug_opencl.trial import checks, vector_checks
from tensorplug_opencl.trial.stages import (
    TOGETHER,
    VECTORS,
    find_limits,
    name_floats,
    name_vectors,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TextIO

    from tensorplug_opencl.trial.checks import Check, Part

    Array = np.ndarray[Any, Any]
    Stages = Iterator[tuple[str, Callable[[], str]]]


# What a driver says if other processes have the memory, or the device.
_PASSING: Final = (
    cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE,
    cl.status_code.OUT_OF_HOST_MEMORY,
    cl.status_code.DEVICE_NOT_AVAILABLE,
)
_FREED: Final = 8  # pieces of shared memory
_PIECE: Final = 4096  # bytes of each


def main() -> None:
    """Serve requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # drivers print, too
    sys.stdout = sys.stderr
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    warnings.simplefilter("ignore")
    invokers.keep_in_memory()
    tried: _Tried | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if tried is None:
                device = _find_device(asked["device"])
                _answer(answers, begin="opening the device")
                tried = _Tried(device)
                _answer(answers, end="opening the device", wrong="")
            if "source" in asked:
                _answer(answers, binary=tried.build_for_parent(**asked), done=True)
            else:
                tried.serve(answers, **asked)
        except cl.Error as error:
            if not _is_passing(error):
                _answer(answers, end="opening the device", wrong=_summarize(error))
                _answer(answers, done=True)
                return
            _answer(answers, fault=_summarize(error))
            return
        except Exception as error:  # noqa: BLE001  # the parent raises it
            _answer(answers, fault=f"{type(error).__name__}: {error}")
            return


def _is_passing(error: cl.Error) -> bool:
    """Return whether OpenCL says that memory, or the device, is in use by others."""
    return error.code in _PASSING


def _answer(stream: TextIO, **line: Any) -> None:
    stream.write(json.dumps(line) + "\n")
    stream.flush()


def _find_device(facts: dict[str, str]) -> cl.Device:
    for platform in loader.list_platforms():
        if platform.name.strip() != facts["platform"]:
            continue
        for device in platform.get_devices():
            if identity.read_facts(device) == facts:
                return device
    raise SystemExit(f"a new process does not find {facts['name']}")


class _Tried:
    """The trial of one device."""

    def __init__(self, device: cl.Device) -> None:
        self._device = device
        self._context = cl.Context([device])
        self._queue = cl.CommandQueue(self._context, device)
        declared = features.dtypes_of(device)
        self._double = dt.float64 in declared
        self._half = dt.float16 in declared
        self._group = min(checks.GROUP, device.max_work_group_size, device.max_work_item_sizes[0])
        self._atomics = features.ATOMICS64 in device.extensions.split()
        self._shares = shared_memory.is_offered(device)

    def serve(
        self, answers: TextIO, *, passed: list[str], failed: list[str], rest: bool, **_: Any
    ) -> None:
        """Try the first stages, or the rest."""
        done, known = {*passed, *failed}, set(failed)
        if not rest and TOGETHER not in done and not failed:
            _answer(answers, begin=TOGETHER)
            together = [*self._try_together(), TOGETHER]
            for name in together:
                _answer(answers, end=name, wrong="")
            done.update(together)
        for name, stage in (self._rest if rest else self._first)(known):
            if name in done:
                continue
            _answer(answers, begin=name)
            wrong = stage()
            if wrong:
                known.add(name)
            _answer(answers, end=name, wrong=wrong)
            if find_limits(known) is None:
                break  # no other stage changes the verdict
        _answer(answers, done=True)

    def build_for_parent(self, *, source: str, key: str, story: dict[str, str], **_: Any) -> str:
        """Return the binary of a program; "" if the driver refuses it, as it will the parent."""
        with suppress(cl.Error), attempts.attempting(key, **story):
            program = cl.Program(self._context, source)
            build(program, choose_options(self._device))
            return base64.b64encode(read_binary(program)).decode()
        return ""

    def _try_together(self) -> list[str]:
        """Try the first stages in one program, from its binary; return those that passed."""
        floats, loops = vector_checks.check_folds("float", "f4", VECTORS[0]), checks.loops()
        with suppress(cl.Error):
            program = self._reload(self._build(f"{floats[0]}\n{loops[0]}"))
            passed = ["binaries"]
            if not self._compare(program, floats[1]):
                passed.append(name_floats(VECTORS[0]))
                if self._shares and not self._compare(program, floats[1], shared=True):
                    passed.append("shared memory")
            if not self._compare(program, loops[1]):
                passed.append("long loops")
            return passed
        return []

    def _first(self, failed: set[str]) -> Stages:
        """Yield the stages that come first; the caller adds to ``failed`` meanwhile."""
        for nbytes in VECTORS:
            part = vector_checks.check_folds("float", "f4", nbytes)
            yield name_floats(nbytes), partial(self._try, part)
            if name_floats(nbytes) not in failed:
                break
        yield "long loops", partial(self._try, checks.loops())
        least = vector_checks.check_folds("float", "f4", VECTORS[-1])
        yield "binaries", partial(self._try, least, reload=True)
        if self._shares:
            yield "shared memory", partial(self._try, least, shared=True)

    def _rest(self, failed: set[str]) -> Stages:
        """Yield the other stages, likewise."""
        if self._double:
            least = vector_checks.check_folds("double", "f8", VECTORS[-1])
            yield "float64", partial(self._try, least)
        if self._half:
            yield "float16", partial(self._try, checks.halves())
        if self._atomics:
            yield "64-bit atomics", partial(self._try, checks.wide_atomics(self._group))
        double = self._double and "float64" not in failed
        for nbytes in VECTORS:
            if name_floats(nbytes) in failed:
                continue
            part = vector_checks.check_vectors(nbytes, double=double)
            yield name_vectors(nbytes), partial(self._try, part)
            if name_vectors(nbytes) not in failed:
                return

    def _try(self, part: Part, *, reload: bool = False, shared: bool = False) -> str:
        """Build and run a program; return what is wrong with its results, "" if nothing is.

        ``reload``: from its binary. ``shared``: on memory that the host uses without any command.
        """
        source, part_checks = part
        try:
            program = self._build(source)
            if reload:
                program = self._reload(program)
            return self._compare(program, part_checks, shared=shared)
        except cl.Error as error:
            if _is_passing(error):
                raise
            return _summarize(error)

    def _build(self, source: str) -> cl.Program:
        """Compile and return a program; the driver's own cache on disk cannot have it."""
        program = cl.Program(self._context, f"{source}\n// {os.urandom(8).hex()}\n")
        build(program, choose_options(self._device))
        return program

    def _reload(self, program: cl.Program) -> cl.Program:
        """Return a program that the driver loads from the binary of another."""
        again = cl.Program(self._context, [self._device], [read_binary(program)])
        build(again, choose_options(self._device))
        return again

    def _compare(
        self, program: cl.Program, part_checks: list[Check], *, shared: bool = False
    ) -> str:
        for check in part_checks:
            wrong = check.explain_mismatch(self._run(program, check, shared=shared))
            if wrong:
                return wrong
        if shared:
            self._free_shared_late()
        return ""

    def _run(self, program: cl.Program, check: Check, *, shared: bool) -> Array:
        """Run a kernel and return its output, which starts as zeros."""
        kernel = cl.Kernel(program, check.kernel)
        arrays = [*check.inputs, np.zeros_like(check.expected)]
        pieces = [self._share(array) if shared else self._copy(array) for array in arrays]
        for number, (memory, _) in enumerate(pieces):
            kernel.set_arg(number, memory)
        cl.enqueue_nd_range_kernel(self._queue, kernel, (check.items,), (check.group,))
        memory, made = pieces[-1]
        if not shared:
            cl.enqueue_copy(self._queue, made, memory, is_blocking=True)
        self._queue.finish()
        return made

    def _copy(self, array: Array) -> tuple[Any, Array]:
        memory = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, array.nbytes)
        cl.enqueue_copy(self._queue, memory, array, is_blocking=False)
        return memory, array

    def _share(self, array: Array) -> tuple[Any, Array]:
        memory = cl.SVMAllocation(self._context, array.nbytes, 0, shared_memory.FLAGS)
        view = np.ndarray(array.shape, array.dtype, memory.buf)
        view[...] = array
        return memory, view

    def _free_shared_late(self) -> None:
        """Free shared memory by commands that begin when their caller's arguments are gone.

        PoCL before 3.1 then frees whatever address is there by now, which ends the process.
        """
        pieces = [
            cl.SVMAllocation(self._context, _PIECE, 0, shared_memory.FLAGS, queue=self._queue)
            for _ in range(_FREED)
        ]
        gate = cl.UserEvent(self._context)
        cl.enqueue_barrier(self._queue, wait_for=[gate])
        pieces.clear()
        # Python puts some of these where the freed objects were, which held the addresses.
        overwritten = [bytes([7]) * size for size in range(8, 160) for _ in range(200)]
        gate.set_status(cl.command_execution_status.COMPLETE)
        self._queue.finish()
        del overwritten


def _summarize(error: cl.Error) -> str:
    """Return OpenCL's error in one line, with the compiler's first error if there is one."""
    first, *log = str(error).splitlines() or [type(error).__name__]
    complaints = [line.strip() for line in log if "error" in line.lower()]
    return " - ".join([first.partition(" - ")[0], *complaints[:1]])
