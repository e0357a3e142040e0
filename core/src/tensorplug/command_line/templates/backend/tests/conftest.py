"""Every test runs on this backend, on an engine of its own, and nothing may run on another."""

from __future__ import annotations

import pytest
from tensorplug.testing import isolated_engine


@pytest.fixture(autouse=True, scope="module")
def engine():
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TENSORPLUG_FALLBACK", "error")
        with isolated_engine("acme") as engine:
            yield engine
