"""The table of steps, and how the time is shared."""

from __future__ import annotations

from pathlib import Path

import pytest
from folding import fold
from steps import STEPS, WORKLOADS, allowance

HERE = Path(__file__).parent


def test_each_step_has_a_program_a_fold_and_a_unique_name():
    for step in STEPS:
        assert (HERE / step.program).exists(), step
        assert fold(step.name, []).get("failures") == []
    assert len({step.name for step in STEPS}) == len(STEPS)
    assert STEPS[0].name == "facts"


def test_steps_need_the_modules_of_their_backend():
    for step in STEPS:
        assert ("pyopencl" in step.packages) is (step.backend == "opencl")
        assert ("wgpu" in step.packages) is (step.backend == "webgpu")
    assert {step.backend for step in STEPS} == {"opencl", "webgpu"}


def test_steps_share_the_time_by_their_parts():
    total = sum(step.share for step in STEPS)
    assert allowance(STEPS[0], STEPS, 600) == pytest.approx(600 * STEPS[0].share / total)
    assert allowance(STEPS[-1], STEPS[-1:], 123) == 123


def test_all_steps_that_take_what_they_may_end_with_the_time():
    left = 600.0
    for at, step in enumerate(STEPS):
        left -= allowance(step, STEPS[at:], left)
    assert left == pytest.approx(0)


def test_unused_time_goes_to_the_others_in_proportion():
    after_none = [allowance(step, STEPS[1:], 600) for step in STEPS[1:]]
    after_all = [allowance(step, STEPS[1:], 500) for step in STEPS[1:]]
    assert all(one > other for one, other in zip(after_none, after_all, strict=True))


def test_workloads_are_named_once():
    assert len(set(WORKLOADS)) == len(WORKLOADS)
