"""Every test runs on the backend webgpu, without fallback to another; none without an adapter."""

from __future__ import annotations

import pytest

import tensorplug as tp
from tensorplug.testing import isolated_engine
from tensorplug_webgpu import adapters


def pytest_collection_modifyitems(items):
    try:
        adapters.find()
    except tp.errors.BackendUnavailableError as error:
        for item in items:
            if "webgpu_backend" in item.path.parts:
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
