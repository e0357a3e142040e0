"""Each test module runs on this backend, in its own engine, and without fallback to others."""

from __future__ import annotations

import pytest
from tensorplug.testing import isolated_engine


@pytest.fixture(autouse=True, scope="module")
def engine():
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TENSORPLUG_FALLBACK", "error")
        with isolated_engine("acme") as engine:
            yield engine


@pytest.fixture(scope="module")
def backend(engine):
    """The opened backend: its dtypes may depend on the device."""
    return engine.open("acme").backend
