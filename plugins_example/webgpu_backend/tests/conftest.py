"""Tests run on webgpu, without fallback; without an adapter, only those of one file do."""

from __future__ import annotations

import pytest

import tensorplug as tp
from tensorplug.testing import isolated_engine
from tensorplug_webgpu import adapters

NEEDS_NONE = "test_without_adapter"


def pytest_collection_modifyitems(items):
    try:
        adapters.find()
    except tp.errors.BackendUnavailableError as error:
        for item in items:
            if "webgpu_backend" in item.path.parts and item.path.stem != NEEDS_NONE:
                item.add_marker(pytest.mark.skip(reason=str(error)))


@pytest.fixture(autouse=True, scope="module")
def engine():
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TENSORPLUG_FALLBACK", "error")
        with isolated_engine("webgpu") as engine:
            yield engine


@pytest.fixture(scope="module")
def backend(engine):
    return engine.open("webgpu").backend
