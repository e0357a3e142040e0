"""Every test here runs on the backend under test, and nothing may run on another one."""

from __future__ import annotations

import pytest

import tensorplug as tp
from tensorplug.testing import isolated_engine


@pytest.fixture(autouse=True)
def chunk_bytes(monkeypatch, request):
    """Open the backend with chunks as large as the test's parameter says."""
    size = getattr(request, "param", "128MiB")
    monkeypatch.setenv("TENSORPLUG_DASK_CHUNK_BYTES", size)
    monkeypatch.setenv("TENSORPLUG_FALLBACK", "error")
    with isolated_engine("dask"):
        assert tp.get_backend() == "dask"
        yield size
