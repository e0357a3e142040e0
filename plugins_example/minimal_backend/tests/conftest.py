"""Every test runs on the minimal backend, without fallback to another."""

from __future__ import annotations

import pytest
import tensorplug as tp
from tensorplug.testing import isolated_engine


@pytest.fixture(autouse=True, scope="module")
def minimal():
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TENSORPLUG_FALLBACK", "error")
        with isolated_engine("minimal") as engine:
            assert tp.get_backend() == "minimal"
            yield engine
