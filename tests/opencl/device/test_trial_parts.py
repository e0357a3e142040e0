"""The trial has two parts: what the first operation needs, and what later programs need."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.opencl.device.conftest import fake, judge

from tensorplug.errors import BackendUnavailableError, KernelRefusedError
from tensorplug.plugin import specs
from tensorplug_opencl.backend import OpenCLBackend
from tensorplug_opencl.kernels.expressions import prepare_rule
from tensorplug_opencl.machine.limits import NONE as NO_LIMITS
from tensorplug_opencl.machine.limits import TRIED_LATER, Limits
from tensorplug_opencl.trial import parent

COUNTING = """
import sys
from tensorplug_opencl.trial import child
real = child.build

def build(program, options):
    with open({builds!r}, "a") as builds:
        builds.write("one ")
    real(program, options)

child.build = build
child.main(sys.argv[1])
"""


def test_the_first_stages_are_one_program(monkeypatch, folder, target, tmp_path):
    """A device is opened after few builds, which its first sum of floats needs no more of."""
    builds = tmp_path / "builds"
    monkeypatch.setattr(parent, "_CODE", COUNTING.format(builds=str(builds)))
    (actual,) = parent.find_verdicts([target])
    if actual.state != "sound":
        pytest.skip("this driver fails, so its stages are tried one by one")
    assert len(builds.read_text().split()) <= 3  # all, a small one, and that one from its binary
    opened = OpenCLBackend(target, actual.limits, lambda: parent.finish(target))
    try:
        x = opened.from_host(np.ones(1000, np.float32))
        add = elementwise_sum(opened.runtime, x.type)
        assert np.array_equal(opened.to_host(add(x, x)), np.full(1000, 2, np.float32))
        assert not parent.find_verdicts([target])[0].finished
        (file,) = folder.glob("*.verdict.json")
        assert not json.loads(file.read_text())["finished"]
        y = opened.from_host(np.ones(1000, np.int32))
        add = elementwise_sum(opened.runtime, y.type)
        assert np.array_equal(opened.to_host(add(y, y)), np.full(1000, 2, np.int32))
        assert parent.find_verdicts([target])[0].finished
        assert json.loads(file.read_text())["finished"]
    finally:
        opened.close()


def elementwise_sum(runtime, type_):
    return prepare_rule(runtime, specs.ADD, [type_, type_], type_)


def test_stages_are_tried_one_by_one_where_they_crash_together(child):
    runs = child(together="dies", shared_memory="dies")
    actual = judge(fake())
    assert (actual.state, actual.limits) == ("limited", Limits(shared_memory=False))
    assert actual.findings == ("shared memory: the process died of SIGKILL",)
    assert runs()[1]["passed"] == ["together"]


@pytest.mark.parametrize(
    ("text", "later"),
    [
        ("kernel void run(global const float *x) { float16 v; half_way(x); double_it; }", False),
        ("kernel void run(global const int *x, const long at) { uint i = at; }", False),
        ("kernel void run(global const double *x)", True),
        ("convert_float16(*(global half8 *)x)", True),
        ("atom_add(y, x)", True),
        ("const uchar16 v;", True),
        ("long2 v;", True),
    ],
)
def test_which_programs_need_the_rest(text, later):
    assert bool(TRIED_LATER.search(text)) == later


@pytest.mark.parametrize("failed", ["float64", "float16"])
def test_a_dtype_that_fails_late_is_refused(target, failed):
    opened = OpenCLBackend(target, NO_LIMITS, lambda: NO_LIMITS._replace(**{failed: False}))
    try:
        ctype = {"float64": "double", "float16": "half"}[failed]
        for _ in range(2):
            with pytest.raises(KernelRefusedError, match="trial"):
                opened.runtime.launch(f"// late\nkernel void run(global {ctype} *x)", 1, [], 1)
    finally:
        opened.close()


def test_a_device_that_is_unsound_late_is_not_used(child):
    child(vectors_of_64_bytes="x", vectors_of_32_bytes="y", vectors_of_16_bytes="z")
    parent.find_verdicts([fake()])
    with pytest.raises(BackendUnavailableError, match="vectors of 16 bytes: z"):
        parent.finish(fake())
