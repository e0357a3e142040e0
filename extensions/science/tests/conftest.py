"""Every test runs on an engine of its own."""

from __future__ import annotations

import pytest

from tensorplug.testing import isolated_engine


@pytest.fixture(autouse=True)
def engine():
    with isolated_engine("cpu") as own:
        yield own
