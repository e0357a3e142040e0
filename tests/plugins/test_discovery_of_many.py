"""Thousands of plugins: each step of discovery looks at each of them once."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import pytest

from tensorplug.engine.settings import Settings
from tensorplug.plugins import metadata, requirements, selection
from tensorplug.plugins.metadata import EXTENSIONS, Candidate, ExtensionInfo
from tensorplug.plugins.selection import Selection

MANY = 3000


class Watched(tuple):
    """Candidates, and how often they were walked through."""

    __slots__ = ()
    walks: ClassVar[Counter[str]] = Counter()

    def __iter__(self):
        self.walks["all"] += 1
        return super().__iter__()


@pytest.fixture
def asked(monkeypatch):
    """How often the core's version was read, and requirements were compared with it."""
    seen = Counter()
    real = requirements.check_version

    def check(*arguments):
        seen["checks"] += 1
        return real(*arguments)

    def version():
        seen["versions"] += 1
        return "0.1.0"

    monkeypatch.setattr(selection, "check_version", check)
    monkeypatch.setattr(metadata, "core_version", version)
    Watched.walks.clear()
    return seen


@pytest.mark.parametrize("distributions", [1, 500])
def test_listing_takes_linear_time(distributions, asked):
    candidates = Watched(
        Candidate(
            EXTENSIONS, f"p{at}", f"acme-{at % distributions}", "1", None, ("tensorplug>=0",)
        )
        for at in range(MANY)
    )
    chosen = Selection(candidates, Settings())
    listed = chosen.listing(EXTENSIONS, ExtensionInfo, {})
    assert {info.name for info in listed} == {f"p{at}" for at in range(MANY)}
    assert {info.state for info in listed} == {"available"}
    assert asked == {"versions": 1, "checks": distributions}
    assert Watched.walks["all"] < 10


def test_a_group_is_compared_with_ours_once():
    metadata.meant_group.cache_clear()
    for _ in range(MANY):
        assert metadata.meant_group("tensorplug.extension") == EXTENSIONS
    assert metadata.meant_group.cache_info().misses == 1
