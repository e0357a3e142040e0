"""Every test runs on the backend webgpu, without fallback to another; none without an adapter."""

from __future__ import annotations

import pytest

from tensorplug.testing import isolated_engine
from tensorplug_webgpu import adapters


def pytest_collection_modifyitems(items):
    if adapters.find():
        return
    reason = "WebGPU finds no adapter; Debian's mesa-vulkan-drivers has one for processors"
    for item in items:
        if "tensorplug_webgpu" in str(item.path) or "webgpu_backend" in str(item.path):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True, scope="module")
def engine():
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TENSORPLUG_FALLBACK", "error")
        with isolated_engine("webgpu") as engine:
            yield engine


@pytest.fixture(scope="module")
def backend(engine):
    return engine.open("webgpu").backend
