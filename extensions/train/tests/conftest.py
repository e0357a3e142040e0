"""Every test runs on an engine of its own, so that it may remove and register what it likes."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

import tensorplug as tp
from tensorplug.testing import isolated_engine
from tensorplug_train.specs import SPECS

# Where steps run, and how. On "cpu without" our kernels are removed first; "minimal" is an example
# of tensorplug's repository, a backend that knows nothing of them.
PLACES = {
    "cpu": "native",
    "cpu without": "decomposed",
    "opencl": "native",
    "minimal": "decomposed",
}


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TENSORPLUG_FALLBACK", "error")
    with isolated_engine("cpu") as own:
        yield own


@pytest.fixture
def active():
    """Return a function that makes a backend the active one, or skips where there is none."""
    with ExitStack() as entered:

        def enter(name):
            try:
                entered.enter_context(tp.use_backend(name))
            except (
                tp.errors.BackendNotInstalledError,
                tp.errors.BackendUnavailableError,
            ) as error:
                pytest.skip(str(error))

        yield enter


@pytest.fixture(params=PLACES)
def place(request, active):
    """Make a backend the active one and return how steps must run there."""
    name, _, without = request.param.partition(" ")
    active(name)
    if without:
        for spec in SPECS:
            tp.unregister_kernel(spec, name)
    return PLACES[request.param]
