"""Every test runs on an engine of its own, so that it may remove and register what it likes."""

from __future__ import annotations

import pytest
from tensorplug.testing import isolated_engine


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TENSORPLUG_FALLBACK", "error")
    with isolated_engine("cpu") as engine:
        yield engine
