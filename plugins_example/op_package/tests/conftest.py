"""Every test has its own engine, so that it can register and remove anything."""

from __future__ import annotations

import pytest
from tensorplug.testing import isolated_engine


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TENSORPLUG_FALLBACK", "error")
    with isolated_engine("cpu") as own:
        yield own
