"""Pytest plugin: SciPy's own tests on tensorplug.

SciPy's ``conftest.py`` must be loaded as a plugin (``-p scipy.conftest``), not as a conftest: its
fixture ``xp`` runs as it is, and gets another parameter.
"""

from __future__ import annotations

import pytest
import scipy.conftest

import tensorplug as tp

scipy.conftest.xp_known_backends.add(tp.__name__)


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "xp" in metafunc.fixturenames:
        ours = pytest.param(tp, id=tp.__name__, marks=pytest.mark.array_api_backends)
        mark = pytest.mark.parametrize("xp", [ours], indirect=True)
        metafunc.definition.add_marker(mark)  # instead of the fixture's own parameters


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    def ours(item: pytest.Item) -> bool:
        slow = item.get_closest_marker("slow") or item.get_closest_marker("xslow")
        return item.get_closest_marker("array_api_backends") is not None and slow is None

    config.hook.pytest_deselected(items=[item for item in items if not ours(item)])
    items[:] = filter(ours, items)
