"""Groups of the whole language on an OpenCL device, against the interpreter."""

from __future__ import annotations

import random

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


@given(st.integers(0, 1 << 40))
@settings(max_examples=25, deadline=None)
def test_random_groups(backend, seed):
    group, arrays = draw(random.Random(seed))
    with np.errstate(all="ignore"):
        wanted = interpreter(group)(*arrays)
    run = loops.compile_group(group, backend.runtime)
    found = run(*(backend.from_host(np.asarray(array)) for array in arrays))
    assert_same([backend.to_host(each) for each in found], wanted)
