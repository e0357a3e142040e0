"""Every test runs on an engine of its own, so that it may remove and register what it likes."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

import tensorplug as tp
from tensorplug.testing import isolated_engine


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


@pytest.fixture(params=["cpu", "opencl", "minimal"])
def place(request, active):
    """Make a backend the active one; "minimal" is an example, which has only the primitives."""
    active(request.param)
