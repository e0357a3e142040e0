"""The trial has two parts: what the first operation needs, and what later programs need."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.opencl.device.conftest import fake, judge

from tensorplug.errors import BackendUnavailableError, BackendWarning, KernelRefusedError
from tensorplug.plugin import Group, GroupInput, GroupOutput, expressions
from tensorplug_loops.templates import sized
from tensorplug_opencl.backend import OpenCLBackend
from tensorplug_opencl.device import Found
from tensorplug_opencl.machine.limits import NONE as NO_LIMITS
from tensorplug_opencl.machine.limits import TRIED_LATER, Limits
from tensorplug_opencl.programs.program import Programs, read_title
from tensorplug_opencl.trial import parent

COUNTING = """
from tensorplug_opencl.trial import child
real = child.build

def build(program, options):
    with open({builds!r}, "a") as builds:
        builds.write("one ")
    real(program, options)

child.build = build
child.main()
"""


def test_the_first_stages_are_one_program(monkeypatch, folder, target, tmp_path):
    """A device is opened after few builds, which its first sum of floats needs no more of."""
    builds = tmp_path / "builds"
    monkeypatch.setattr(parent, "_CODE", COUNTING.format(builds=str(builds)))
    (actual,) = parent.find_verdicts([target])
    if actual.state != "sound":
        pytest.skip("this driver fails, so its stages are tried one by one")
    assert len(builds.read_text().split()) == 2  # one, and that one from its binary
    opened = OpenCLBackend(target, actual.limits, lambda: parent.finish(target))
    try:
        x = opened.from_host(np.ones(1000, np.float32))
        add = elementwise_sum(opened, x.type)
        assert np.array_equal(opened.to_host(add(x, x)), np.full(1000, 2, np.float32))
        assert not parent.find_verdicts([target])[0].finished
        (file,) = folder.glob("*.verdict.json")
        assert not json.loads(file.read_text())["finished"]
        y = opened.from_host(np.ones(1000, np.int32))
        add = elementwise_sum(opened, y.type)
        assert np.array_equal(opened.to_host(add(y, y)), np.full(1000, 2, np.int32))
        assert parent.find_verdicts([target])[0].finished
        assert json.loads(file.read_text())["finished"]
    finally:
        opened.close()


def elementwise_sum(opened, type_):
    """Return the sum of two arrays as a group."""
    read, parameter = GroupInput(type_, (True,)), expressions.parameter
    total = parameter(0, type_.dtype) + parameter(1, type_.dtype)
    group = Group("sum", type_.shape, (read, read), (), (GroupOutput(total, type_, (True,)),))
    add = opened.compile_form(sized(group))
    return lambda a, b: add(a, b)[0]


# The process that builds programs ----------------------------------------------------------------


@pytest.fixture
def own_builds(monkeypatch):
    """Return the list of the programs that this process builds itself."""
    titles = []
    build = Programs._build

    def noted(programs, source):
        titles.append(read_title(source))
        return build(programs, source)

    monkeypatch.setattr(Programs, "_build", noted)
    return titles


@pytest.fixture
def opened(folder, target):
    """Return a backend whose device has just been tried."""
    (actual,) = parent.find_verdicts([target])
    found = Found(target, actual)
    opened = OpenCLBackend(target, actual.limits, found.finish, found.build)
    yield opened
    opened.close()


def double_ones(opened):
    x = opened.from_host(np.ones(1000, np.float32))
    return opened.to_host(elementwise_sum(opened, x.type)(x, x))


def test_the_process_of_the_trial_builds_programs(opened, own_builds, folder):
    if not opened.runtime.limits.binaries:
        pytest.skip("this driver's programs are built in each process")
    assert np.array_equal(double_ones(opened), np.full(1000, 2, np.float32))
    assert not own_builds
    assert len([*folder.glob("*.bin")]) == 1
    assert not [*folder.glob("*.attempt")]


def test_a_process_starts_before_drivers_are_loaded(monkeypatch, child):
    runs = child()
    parent.begin()
    (started,) = parent._children.values()
    assert parent.find_verdicts([fake()])[0].state == "sound"
    assert len(runs()) == 1
    assert [*parent._children.values()] == [started]
    monkeypatch.setattr(parent, "_known", {})
    monkeypatch.setattr(parent, "_children", {})
    parent.begin()  # a verdict is kept: nothing is to be tried, as far as it is known now
    assert not parent._children
    started.end()


def test_an_idle_process_ends(monkeypatch, opened, own_builds):
    (child,) = parent._children.values()
    child._deadline = 0.0
    child._process.wait(20)
    assert child.ended
    assert np.array_equal(double_ones(opened), np.full(1000, 2, np.float32))
    assert len(own_builds) == 1
    opened.runtime.finish_trial()  # by another one
    assert parent.find_verdicts([opened.runtime.device])[0].finished


DYING = """
import os, signal
from tensorplug_opencl.machine import attempts
from tensorplug_opencl.trial import child

def die(_tried, *, key, story, **_):
    with attempts.attempting(key, **story):
        os.kill(os.getpid(), signal.SIGKILL)

child._Tried.build_for_parent = die
child.main()
"""


def test_a_program_whose_build_kills_the_process_is_skipped(
    monkeypatch, folder, request, own_builds
):
    monkeypatch.setattr(parent, "_CODE", DYING)
    opened = request.getfixturevalue("opened")
    with (
        pytest.warns(BackendWarning, match="died while program .* was being built"),
        pytest.raises(KernelRefusedError, match="was being built"),
    ):
        double_ones(opened)
    assert not own_builds
    assert len([*folder.glob("*.attempt")]) == 1


def test_stages_are_tried_one_by_one_where_they_crash_together(child):
    runs = child(together="SIGSEGV", shared_memory="SIGSEGV")
    actual = judge(fake())
    assert (actual.state, actual.limits) == ("limited", Limits(shared_memory=False))
    assert actual.findings == ("shared memory: the process died of SIGSEGV",)
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
        ("y = floor(x);", True),
        ("y = exp(x); int floored(int)", False),
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
