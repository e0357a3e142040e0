from __future__ import annotations

import pytest

from tensorplug_loops import native


@pytest.fixture
def compiled_quickly(monkeypatch):
    """Let the C compiler optimize little, which takes it less time."""
    monkeypatch.setenv("CFLAGS", "-O1")
    native.command.cache_clear()
    yield
    native.command.cache_clear()
