"""How long a process takes from its start to the first number read from an OpenCL device.

The first process of each contender compiles; later ones, which find programs on disk, are
measured. The baseline does the minimum with pyopencl.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from harness import Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness import Call

BARE = """
import numpy as np
import pyopencl as cl
from tensorplug_opencl import device
context = cl.Context([device.choose(None).device])
queue = cl.CommandQueue(context)
program = cl.Program(context, "kernel void run(global const float *a, global float *y) {"
                     "size_t i = get_global_id(0); if (i < 1000) y[i] = a[i] + 1; }").build(["-w"])
x = np.ones(1000, np.float32)
flags = cl.mem_flags
a = cl.Buffer(context, flags.COPY_HOST_PTR, hostbuf=x)
y = cl.Buffer(context, flags.READ_WRITE, x.nbytes)
cl.Kernel(program, "run")(queue, (1024,), (128,), a, y)
cl.enqueue_copy(queue, x, y)
"""
OURS = """
import tensorplug as tp
tp.set_backend("opencl")
tp.add(tp.ones((1000,)), 1.0).numpy()
"""
IMPORTS = "import tensorplug"


def _process(code: str) -> Call:
    def run() -> None:
        subprocess.run([sys.executable, "-c", code], check=True)

    return run


def opencl_start() -> Workload:
    """A process that adds once; importing tensorplug alone is shown too."""
    contenders = {
        "pyopencl": _process(BARE),
        "tensorplug opencl": _process(OURS),
        "import tensorplug": _process(IMPORTS),
    }
    return Workload("process, one add", "pyopencl", contenders)


def workloads() -> Iterator[tuple[str, Callable[[], Workload]]]:
    """Yield name and maker of each workload."""
    yield "opencl_start", opencl_start
