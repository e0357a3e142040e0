"""Tests run on an engine of their own, so that they may remove and register what they like."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager

import pytest

import tensorplug as tp
from tensorplug.plugin import specs
from tensorplug.testing import isolated_engine

# Where the op runs, and how. On "cpu without" our kernels are removed first; "minimal" is another
# example of tensorplug's repository, a backend that never heard of attention.
PLACES = {
    "cpu": "native",
    "cpu without": "decomposed",
    "opencl": "native",
    "minimal": "decomposed",
}


@pytest.fixture(scope="session", autouse=True)
def _no_fallback():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TENSORPLUG_FALLBACK", "error")
        yield


@pytest.fixture
def engine():
    with isolated_engine("cpu") as own:
        yield own


@contextmanager
def active(name):
    """Make a backend the active one, or skip where there is none of that name."""
    with ExitStack() as stack:
        try:
            stack.enter_context(isolated_engine(name))
        except (tp.errors.BackendNotInstalledError, tp.errors.BackendUnavailableError) as missing:
            pytest.skip(str(missing))
        yield


@pytest.fixture(scope="module", params=PLACES)
def place(request):
    """Make a backend the active one for a module's tests; return how attention must run there."""
    name, _, without = request.param.partition(" ")
    with active(name):
        if without:
            for spec in (
                specs.ATTENTION,
                specs.ATTENTION_GRAD,
            ):
                tp.unregister_kernel(spec, name)
        yield PLACES[request.param]


@pytest.fixture
def opencl():
    with active("opencl"):
        yield
