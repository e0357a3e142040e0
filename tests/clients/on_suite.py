"""Pytest plugin: makes the array API standard's test suite give the same results every time.

It draws the same examples in each run, and reports a failure without shrinking it.
"""

from __future__ import annotations

import random
import zlib

import hypothesis
import pytest


@pytest.hookimpl(trylast=True)  # after the suite has loaded a profile of its own
def pytest_configure() -> None:
    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
    hypothesis.settings.register_profile(
        "repeatable",
        parent=hypothesis.settings.get_profile("array-api-tests"),
        derandomize=True,
        database=None,
        deadline=None,
        phases=phases,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    hypothesis.settings.load_profile("repeatable")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    random.seed(zlib.crc32(item.nodeid.encode()))  # some tests draw examples from it
