"""Calls that all differ: each has a shape and a number of its own, and memory stays flat."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Of each device: the caches of `docs/memory.md`, with limits that few calls reach.
CHILD = """
import ctypes, gc, json, sys
import numpy as np
import tensorplug as tp
from tensorplug.dispatch import device as devices
from tensorplug.dispatch.context import current_context, engine_of

backend, calls, small = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "small"
# The limits of the long run are a sixteenth of the real ones, so that all caches fill soon.
devices.PLAN_LIMIT, devices.PROGRAM_LIMIT = (32, 8) if small else (512, 64)
tp.set_backend(backend)
if small and backend == "opencl":
    from tensorplug_opencl.programs import kernel_objects, program
    kernel_objects.MOST, program.MOST_KEPT = 4, 4

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

compiled = tp.compile(lambda x, bound: tp.sum(tp.clip(x * 3, -bound, bound)))
differentiated = tp.grad(lambda x: tp.sum(tp.nn.leaky_relu(x, 0.1)))
CALLS = [
    lambda x, number: tp.clip(x, -number, number),
    lambda x, number: tp.sum(x + number, axis=1),
    lambda x, number: tp.nn.leaky_relu(x, number),
    lambda x, number: tp.nn.softmax(x) @ tp.permute_dims(x, (1, 0)),
    lambda x, number: tp.concat([x, x], axis=1)[:, 1:],
    lambda x, number: differentiated(x),
    lambda x, number: compiled(x, number),
]
x = tp.ones((40, 30))
marks, lengths = [], {}
device = engine_of(current_context()).devices.of(current_context())
for at in range(calls):
    number = 0.1 + at / 7919
    own = tp.ones((1 + at % 61, 2 + at // 61)) if at % 2 else x
    CALLS[at % len(CALLS)](own, number).numpy()
    if (at + 1) % (calls // 5) == 0:
        marks.append(resident())
for name in ("plans", "slow_plans", "compiled", "constants", "programs", "recent"):
    lengths[name] = len(getattr(device, name))
lengths["programs of a function"] = len(compiled._known)
if backend == "opencl":
    built = device.backend.runtime.programs._built
    lengths["OpenCL programs"] = len(built)
    lengths["kernel objects"] = max(len(each.objects._holders) for each in built.values())
print(json.dumps([marks, lengths]))
"""


def run(backend: str, calls: int, size: str, seconds: float) -> tuple[list[int], dict[str, int]]:
    """Return the resident bytes after each fifth of the calls, and how much the caches hold."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD, backend, str(calls), size],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    marks, lengths = json.loads(done.stdout)
    return marks, lengths


@pytest.fixture(params=["cpu", "opencl"])
def backend(request: pytest.FixtureRequest) -> str:
    if request.param == "opencl" and not any(
        actual.verdict.usable
        for actual in pytest.importorskip("tensorplug_opencl.device").available()
    ):
        pytest.skip("there is no sound OpenCL device")
    return str(request.param)


BOUNDS = {
    "plans": 32,
    "slow_plans": 32,
    "compiled": 8,
    "constants": 32,
    "programs": 256,
    "recent": 256,
    "programs of a function": 64,
    "OpenCL programs": 4,
    "kernel objects": 4,
}


def test_no_cache_exceeds_its_bound(backend: str) -> None:
    _, lengths = run(backend, 210, "small", 280)
    over = {name: length for name, length in lengths.items() if length > BOUNDS[name]}
    assert not over
    assert lengths["plans"] > 16  # the calls did differ


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read as on Linux")
def test_20_000_distinct_calls_leave_memory_flat(backend: str) -> None:
    marks, _ = run(backend, 20_000, "whole", 880)
    assert marks[-1] - marks[-3] < 8 << 20
    assert marks[-1] - marks[0] < 32 << 20
