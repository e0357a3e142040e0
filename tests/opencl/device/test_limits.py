"""The backend only uses features that a driver gets right, and the trial covers the kernels'
features."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from tests.opencl.conftest import require_device

from tensorplug.contract import dtypes as dt
from tensorplug.contract.expressions import OPERATIONS, apply, parameter
from tensorplug.contract.groups import Group, GroupInput, GroupOutput
from tensorplug.contract.spec import TensorType
from tensorplug.errors import KernelRefusedError
from tensorplug_loops.dialects import opencl_c
from tensorplug_loops.machine import Machine
from tensorplug_loops.schedule import plan
from tensorplug_opencl.backend import OpenCLBackend
from tensorplug_opencl.catalogue import collect_tables
from tensorplug_opencl.codegen import vectors
from tensorplug_opencl.machine.limits import STEPS, Limits
from tensorplug_opencl.trial import vector_checks


def test_a_backend_keeps_to_its_limits(target):
    poor = OpenCLBackend(target, Limits(32, float64=False, float16=False, atomics64=False))
    try:
        assert not poor.dtypes & {dt.float64, dt.complex128, dt.float16}
        assert not poor.runtime.has_atomics64
        assert vectors.choose_lanes(poor.runtime, "float") == 8
        assert vectors.choose_lanes(poor.runtime, "uchar", "double") == 4
    finally:
        poor.close()


PROGRAMS = """
import re, sys
import numpy as np
import tensorplug as tp
from tensorplug_opencl import device
from tensorplug_opencl.programs import program
from tensorplug_opencl.machine.limits import STEPS, Limits
from tensorplug_opencl.trial import parent
from tensorplug_opencl.trial.verdict import Verdict
parent.find_verdicts = lambda devices: [Verdict("limited", Limits(vector_bytes=32))] * len(devices)
texts, kernel = [], program.Programs.kernel

def noted(self, source):
    texts.append(source)
    return kernel(self, source)

program.Programs.kernel = noted
tp.set_backend("opencl")
size = {"char": 1, "short": 2, "half": 2, "int": 4, "float": 4, "long": 8, "double": 8}
rng = np.random.default_rng(0)
for dtype in tp.find_backend("opencl").dtypes:
    kind = str(dtype).rpartition(".")[2]
    x = tp.asarray(np.abs(rng.standard_normal((40, 72)) * 8)).astype(dtype)
    calls = [lambda: tp.sum(x), lambda: tp.sum(x, axis=0), lambda: tp.max(x, axis=1),
             lambda: tp.argmax(x, axis=1), lambda: tp.cumulative_sum(x, axis=0),
             lambda: x @ tp.permute_dims(x, (1, 0)), lambda: x[0] @ tp.permute_dims(x, (1, 0)),
             lambda: tp.nn.softmax(x), lambda: tp.prod(x, axis=1), lambda: tp.fft.fft(x)]
    for call in calls:
        try:
            call()
        except (TypeError, ValueError, tp.errors.TensorplugError):
            pass  # not in this dtype
found = set()
vector = re.compile(r"\\\\bu?(char|short|int|long|half|float|double)(2|4|8|16)\\\\b")
for text in (text.partition("\\n")[2] for text in texts):
    for ctype, width in vector.findall(text):
        found.add(size[ctype] * int(width))
        if size[ctype] * int(width) > 32:
            print(text, file=sys.stderr)
print(len(texts), max(found))
"""


def test_no_program_has_longer_vectors_than_allowed():
    require_device()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAMS.replace("\\\\", "\\")],
        env={**os.environ, "TENSORPLUG_BACKEND": "opencl"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    programs, longest = map(int, done.stdout.split())
    assert programs > 60
    assert longest == 32, done.stderr


def test_functions_called_with_vectors_are_tried():
    """No program calls a built-in function of floats with vectors that the trial leaves out."""
    spans, type_ = (True,), TensorType(dt.float32, (64,))
    reals = [parameter(at, dt.float32) for at in range(3)]
    texts = []
    for op, operation in OPERATIONS.items():
        if dt.float32 in operation.dtypes:
            operands = [reals[0] < 0.0] * (op == "where") + reals
            root = apply(op, *operands[: operation.operands])
            outputs = (GroupOutput(root, TensorType(root.dtype, type_.shape), spans),)
            group = Group(op, type_.shape, (GroupInput(type_, spans),) * 3, (), outputs)
            (launch,) = plan(group, Machine(vector_bytes=32)).launches
            texts.append(opencl_c.write(launch.kernel, op))
    called = set(re.findall(r"\b([a-z_0-9]+)\(", " ".join(texts)))
    called = {name for name in called if not name.startswith(("convert_", "as_"))}
    of_kernels = {"run", "get_global_id", "__attribute__", "vec_type_hint"}
    assert called - {"float8"} - of_kernels <= vector_checks.WIDE_FUNCTIONS
    assert "fmod" in called


@pytest.mark.parametrize("name", ["sum", "argmax", "cumulative_sum", "matmul", "vector"])
def test_loops_that_a_driver_would_not_finish_are_refused(target, name):
    """A work-item of such a device gets a part of a long row, or the backend declines the
    kernel."""
    poor = OpenCLBackend(target, Limits(long_loops=False))
    monkey = pytest.MonkeyPatch()
    steps = []
    check = poor.runtime.check_steps
    monkey.setattr(poor.runtime, "check_steps", lambda count: steps.append(count) or check(count))
    prepare = {entry.spec.name: entry.function for table in collect_tables() for entry in table}
    n = 1 << 27
    long = TensorType(dt.float32, (1, n))
    whole = {"backend": poor, "out": TensorType(dt.float32, (1, 1))}
    calls = {
        "sum": lambda: prepare["Sum"](long, axis=(1,), keep_dims=True, **whole),
        "argmax": lambda: prepare["ArgMax"](
            long, axis=1, backend=poor, out=TensorType(dt.int32, (1,))
        ),
        "cumulative_sum": lambda: prepare["Cumsum"](
            long, axis=1, exclusive=False, reverse=False, backend=poor, out=long
        ),
        "matmul": lambda: prepare["BatchMatMul"](
            TensorType(dt.float32, (64, n)),
            TensorType(dt.float32, (n, 64)),
            transpose_a=False,
            transpose_b=False,
            backend=poor,
            out=TensorType(dt.float32, (64, 64)),
        ),
        "vector": lambda: prepare["BatchMatMul"](
            long,
            TensorType(dt.float32, (n, 1)),
            transpose_a=False,
            transpose_b=False,
            **whole,
        ),
    }
    refused = ""
    try:
        calls[name]()
    except KernelRefusedError as error:
        refused = str(error)
    finally:
        monkey.undo()
        poor.close()
    # Several schedules may be tried; the first loop that is too long ends each of them.
    assert (f"more than {STEPS:,}" in refused) == (steps[-1] > STEPS)
