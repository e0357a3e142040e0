"""Tries whether a driver that a process has used works in a forked child of it.

Drivers start threads, which a child does not have: PoCL and rusticl then wait for them forever at
the first kernel. Intel's for CPUs works. So a child lets a child of its own try.
"""

from __future__ import annotations

import os
import signal
import time
import warnings
from contextlib import suppress
from typing import Final

import numpy as np
import pyopencl as cl

from tensorplug_opencl.programs.program import build, choose_options

SECONDS: Final = 10.0  # building and running take less than one
_GLANCE: Final = 0.01
_ITEMS: Final = 100_000  # enough for all threads of a driver
_PROGRAM: Final = """kernel void run(global int *x) {
  x[get_global_id(0)] *= 3;
}
"""


def explain_failure(device: cl.Device) -> str:
    """Return why ``device`` does not work in this forked process; "" if it does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: it shall have none
        child = os.fork()
    if not child:
        code = 1
        try:
            code = int(not _compute(device))
        finally:
            os._exit(code)
    try:
        ended = _wait(child)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    if ended == 0:
        return ""
    what = "did not end" if ended is None else "failed"
    return (
        f"its driver was loaded by the parent process, and does not work in this forked child: a "
        f"computation {what}. Start processes with the 'spawn' method of multiprocessing, or use "
        "OpenCL in children only"
    )


def _compute(device: cl.Device) -> bool:
    """Return whether a kernel computes the right numbers."""
    context = cl.Context([device])
    queue = cl.CommandQueue(context, device)
    program = cl.Program(context, _PROGRAM)
    build(program, choose_options(device))
    numbers = np.arange(_ITEMS, dtype=np.int32)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    memory = cl.Buffer(context, flags, hostbuf=numbers)
    (kernel,) = program.all_kernels()
    kernel.set_arg(0, memory)
    cl.enqueue_nd_range_kernel(queue, kernel, (_ITEMS,), None)
    result = np.empty_like(numbers)
    cl.enqueue_copy(queue, result, memory, is_blocking=True)
    return bool(np.array_equal(result, 3 * numbers))


def _wait(child: int) -> int | None:
    """Return the exit code of a process, negative for a signal; None if it hangs and is killed."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(_GLANCE)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
