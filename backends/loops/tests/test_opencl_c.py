"""Groups of the whole language on an OpenCL device, against the interpreter."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorplug.plugin import BackendUnavailableError
from tensorplug_conformance.interpreter import interpreter

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
@settings(max_examples=25, deadline=None)
def test_random_groups(backend, runtime, seed):
    group, arrays = draw(random.Random(seed))
    with np.errstate(all="ignore"):
        wanted = interpreter(group)(*arrays)
    run = loops.compile_group(group, runtime)
    found = run(*(backend.from_host(np.asarray(array)) for array in arrays))
    assert_same([backend.to_host(each) for each in found], wanted)
