"""Pytest plugin: scikit-learn's own tests of the array API on tensorplug.

Their parameters come from three generators, which are replaced before any test is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from sklearn.utils import _array_api as known

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME: Final = "tensorplug"


def _namespaces(include_numpy_namespaces: bool = True) -> Iterator[str]:
    yield _NAME


def _combinations(include_numpy_namespaces: bool = True) -> Iterator[tuple[Any, ...]]:
    for dtype in ("float64", "float32"):
        yield _NAME, None, dtype


def _mixtures() -> Iterator[tuple[Any, ...]]:
    ours, numpys = (known.NamespaceAndDevice(name, None) for name in (_NAME, "numpy"))
    yield ours, numpys, f"{_NAME} to numpy"
    yield numpys, ours, f"numpy to {_NAME}"


known.yield_namespaces = _namespaces
known.yield_namespace_device_dtype_combinations = _combinations
known.yield_mixed_namespace_input_permutations = _mixtures


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    def ours(item: pytest.Item) -> bool:
        return _NAME in item.name

    config.hook.pytest_deselected(items=[item for item in items if not ours(item)])
    items[:] = filter(ours, items)
