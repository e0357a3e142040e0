"""The process in which a driver is tried: it reports the start and the result of each stage.

Its argument is JSON: the facts of the ``device``, the stages that ``passed`` and ``failed``
earlier, and ``rest``: whether to try those that do not come first. It writes a line of JSON at the
start and at the end of each stage. So a stage without an end is the one that crashed.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyopencl as cl

from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.machine import features, identity, loader
from tensorplug_opencl.memory import shared_memory
from tensorplug_opencl.programs import invokers
from tensorplug_opencl.programs.program import build, choose_options, read_binary
from tensorplug_opencl.runtime import ATOMICS64
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


_FREED: Final = 8  # pieces of shared memory
_PIECE: Final = 4096  # bytes of each


def main(argument: str) -> None:
    """Try one device."""
    said, sys.stdout = sys.stdout, sys.stderr  # drivers may print, too
    warnings.simplefilter("ignore")
    invokers.keep_in_memory()
    asked = json.loads(argument)
    done = [*asked["passed"], *asked["failed"]]
    tried = _Tried(_find_device(asked["device"]))
    failed = set(asked["failed"])
    if not asked["rest"] and TOGETHER not in done and not failed:
        _say(said, begin=TOGETHER)
        passed = tried.try_together()
        for name in (*passed, TOGETHER):
            _say(said, end=name, wrong="")
        done += passed
    for name, stage in (tried.rest if asked["rest"] else tried.first)(failed):
        if name in done:
            continue
        _say(said, begin=name)
        wrong = stage()
        if wrong:
            failed.add(name)
        _say(said, end=name, wrong=wrong)
        if find_limits(failed) is None:
            break  # no other stage changes the verdict
    _say(said, done=True)


def _say(stream: TextIO, **line: Any) -> None:
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


class _Opened(NamedTuple):
    device: cl.Device
    context: cl.Context
    queue: cl.CommandQueue


class _Tried:
    """The trial of one device."""

    def __init__(self, device: cl.Device) -> None:
        context = cl.Context([device])
        self._at = _Opened(device, context, cl.CommandQueue(context, device))
        declared = features.dtypes_of(device)
        self._double = dt.float64 in declared
        self._half = dt.float16 in declared
        self._group = min(checks.GROUP, device.max_work_group_size, device.max_work_item_sizes[0])
        self._atomics = ATOMICS64 in device.extensions.split()

    def try_together(self) -> list[str]:
        """Try the first stages in two programs; return those that passed.

        The binary is that of a small program: with many kernels, drivers take long to make one.
        """
        parts = {
            "integers": checks.integers(),
            "scalars": checks.reals(),
            "groups": checks.groups(self._group),
            "long loops": checks.loops(),
            name_floats(VECTORS[0]): vector_checks.check_floats(VECTORS[0]),
        }
        passed = []
        with suppress(cl.Error):
            program = self._build("\n".join(source for source, _ in parts.values()))
            for name, (_, own) in parts.items():
                if not self._compare(program, own):
                    passed.append(name)
        with suppress(cl.Error):
            source, own = checks.sums()
            program = self._reload(self._build(source))
            if not self._compare(program, own):
                passed.append("binaries")
                shared = shared_memory.is_offered(self._at.device)
                if shared and not self._compare_shared(program, own):
                    passed.append("shared memory")
        return passed

    def first(self, failed: set[str]) -> Iterator[tuple[str, Callable[[], str]]]:
        """Yield the stages that come first; the caller adds to ``failed`` meanwhile."""
        yield "integers", partial(self._try, checks.integers())
        yield "scalars", partial(self._try, checks.reals())
        yield "groups", partial(self._try, checks.groups(self._group))
        yield "long loops", partial(self._try, checks.loops())
        yield "binaries", partial(self._try_reloaded, checks.sums())
        if shared_memory.is_offered(self._at.device):
            yield "shared memory", partial(self._try_shared, checks.sums())
        for nbytes in VECTORS:
            yield name_floats(nbytes), partial(self._try, vector_checks.check_floats(nbytes))
            if name_floats(nbytes) not in failed:
                return

    def rest(self, failed: set[str]) -> Iterator[tuple[str, Callable[[], str]]]:
        """Yield the other stages, likewise."""
        if self._double:
            yield "float64", partial(self._try, checks.reals("double"))
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

    def _try(self, part: Part) -> str:
        """Build and run a program; return what is wrong with its results, "" if nothing is."""
        source, part_checks = part
        try:
            return self._compare(self._build(source), part_checks)
        except cl.Error as error:
            return _summarize(error)

    def _try_reloaded(self, part: Part) -> str:
        """Build a program, load it again from its binary, and run the loaded one."""
        source, part_checks = part
        try:
            return self._compare(self._reload(self._build(source)), part_checks)
        except cl.Error as error:
            return _summarize(error)

    def _reload(self, program: cl.Program) -> cl.Program:
        """Return a program that the driver loads from the binary of another."""
        again = cl.Program(self._at.context, [self._at.device], [read_binary(program)])
        build(again, choose_options(self._at.device))
        return again

    def _try_shared(self, part: Part) -> str:
        """Run a program on memory that the host fills and reads without any command."""
        source, part_checks = part
        try:
            return self._compare_shared(self._build(source), part_checks)
        except cl.Error as error:
            return _summarize(error)

    def _compare_shared(self, program: cl.Program, part_checks: list[Check]) -> str:
        for check in part_checks:
            wrong = check.explain_mismatch(self._run_shared(program, check))
            if wrong:
                return wrong
        self._free_shared_late()
        return ""

    def _free_shared_late(self) -> None:
        """Free shared memory by commands that begin when their caller's arguments are gone.

        PoCL before 3.1 then frees whatever address is there by now, which ends the process.
        """
        queue, context = self._at.queue, self._at.context
        pieces = [
            cl.SVMAllocation(context, _PIECE, 0, shared_memory.FLAGS, queue=queue)
            for _ in range(_FREED)
        ]
        gate = cl.UserEvent(context)
        cl.enqueue_barrier(queue, wait_for=[gate])
        pieces.clear()
        # Python puts some of these where the freed objects were, which held the addresses.
        overwritten = [bytes([7]) * size for size in range(8, 160) for _ in range(200)]
        gate.set_status(cl.command_execution_status.COMPLETE)
        queue.finish()
        del overwritten

    def _run_shared(self, program: cl.Program, check: Check) -> np.ndarray[Any, Any]:
        """Run a kernel and return its output, which starts as zeros, where it was written."""
        kernel = cl.Kernel(program, check.kernel)
        views = []
        for number, array in enumerate([*check.inputs, np.zeros_like(check.expected)]):
            memory = cl.SVMAllocation(self._at.context, array.nbytes, 0, shared_memory.FLAGS)
            views.append(np.ndarray(array.shape, array.dtype, memory.buf))
            views[-1][...] = array
            kernel.set_arg(number, memory)
        cl.enqueue_nd_range_kernel(self._at.queue, kernel, (check.items,), (check.group,))
        self._at.queue.finish()
        return views[-1]

    def _build(self, source: str) -> cl.Program:
        """Compile and return a program; the driver's own cache on disk cannot have it."""
        program = cl.Program(self._at.context, f"{source}\n// {os.urandom(8).hex()}\n")
        build(program, choose_options(self._at.device))
        return program

    def _compare(self, program: cl.Program, part_checks: list[Check]) -> str:
        for check in part_checks:
            wrong = check.explain_mismatch(self._run(program, check))
            if wrong:
                return wrong
        return ""

    def _run(self, program: cl.Program, check: Check) -> np.ndarray[Any, Any]:
        """Run a kernel and return its output, which starts as zeros."""
        queue, context = self._at.queue, self._at.context
        made = np.zeros_like(check.expected)
        buffers = []
        for array in [*check.inputs, made]:
            memory = cl.Buffer(context, cl.mem_flags.READ_WRITE, array.nbytes)
            cl.enqueue_copy(queue, memory, array, is_blocking=False)
            buffers.append(memory)
        kernel = cl.Kernel(program, check.kernel)
        for number, memory in enumerate(buffers):
            kernel.set_arg(number, memory)
        cl.enqueue_nd_range_kernel(queue, kernel, (check.items,), (check.group,))
        cl.enqueue_copy(queue, made, buffers[-1], is_blocking=True)
        return made


def _summarize(error: cl.Error) -> str:
    """Return OpenCL's error in one line, with the compiler's first error if there is one."""
    first, *log = str(error).splitlines() or [type(error).__name__]
    complaints = [line.strip() for line in log if "error" in line.lower()]
    return " - ".join([first.partition(" - ")[0], *complaints[:1]])
