"""Groups of the whole language on an OpenCL device, against the interpreter."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorplug.plugin import BackendUnavailableError, Group, GroupInput, GroupOutput, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_conformance.interpreter import interpreter
from tensorplug_loops.dialects import c, opencl_c
from tensorplug_loops.schedule import plan
from tensorplug_loops.templates import sized

from .random_groups import draw
from .test_dialects import assert_same

loops = pytest.importorskip("tensorplug_opencl.groups.loops")


@pytest.fixture(scope="module")
def backend():
    from tensorplug_opencl.backend import OpenCLBackend

    try:
        opened = OpenCLBackend.open(None)
    except BackendUnavailableError as error:
        pytest.skip(str(error))
    yield opened
    opened.close()


@pytest.fixture(scope="module", params=[False, True], ids=["as it is", "as a GPU"])
def runtime(backend, request):
    own = backend.runtime
    before = own.description
    if request.param:  # one that has work-groups
        lanes = {"vector_bytes": 0, "lanes": 1}
        own.description = replace(before, neighbours=True, group_size=8, cores=2, **lanes)
    yield own
    own.description = before


@given(st.integers(0, 1 << 40))
@example(16_069_936_039)  # it moves int64, and has a constant for an index
@settings(max_examples=25, deadline=None)
def test_random_groups(backend, runtime, seed):
    group, arrays = draw(random.Random(seed))
    with np.errstate(all="ignore"):
        wanted = interpreter(group)(*arrays)
    run = loops.compile_group(sized(group), runtime)
    found = run(*(backend.from_host(np.asarray(array)) for array in arrays))
    assert_same([backend.to_host(each) for each in found], wanted)


def test_longs_that_were_ints_are_compared_as_ints():
    """Mesa 22 takes them for unsigned ones where they are compared with a constant."""
    first = ex.parameter(0, dt.int32)
    at = ex.cast(first, dt.int64)
    inside = ex.apply("logical_and", at < 1, ex.apply("less_equal", ex.constant(0, dt.int64), at))
    type_, result = TensorType(dt.int32, (9,)), TensorType(dt.bool_, (9,))
    outputs = (GroupOutput(inside, result, (True,)),)
    group = Group("compared", (9,), (GroupInput(type_, (True,)),), (), outputs)
    program = plan(group, replace(c.MACHINE, group_size=1))
    (launch,) = program.launches
    text = opencl_c.write(launch.kernel, "compared", narrow=True, apart=True)
    assert len(re.findall(r"\b(v\d+) < 1;|0 <= (v\d+);", text)) == 2
