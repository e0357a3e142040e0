"""Pytest plugin: array-api-extra's own tests on tensorplug."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Library:
    """Stands for a member of the enumeration of libraries, which cannot be extended."""

    modname: str
    name: str = "TENSORPLUG"

    @property
    def value(self) -> str:
        return self.modname

    def like(self, *others: Any) -> bool:
        """Return whether one of them is the same module."""
        return any(other.modname == self.modname for other in others)


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "library" in metafunc.fixturenames:
        ours = pytest.param(Library("tensorplug"), id="tensorplug")
        mark = pytest.mark.parametrize("library", [ours], indirect=True)
        metafunc.definition.add_marker(mark)  # instead of the fixture's own parameters


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    def ours(item: pytest.Item) -> bool:
        return "library" in getattr(item, "fixturenames", ())

    config.hook.pytest_deselected(items=[item for item in items if not ours(item)])
    items[:] = filter(ours, items)
