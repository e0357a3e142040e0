"""Every test runs on XLA, without fallback to another backend, and keeps nothing on the disk."""

from __future__ import annotations

import pytest

import tensorplug as tp
from tensorplug.testing import isolated_engine

pytest.importorskip("jax")
pytest.importorskip("tensorplug_xla")


@pytest.fixture(autouse=True)
def xla(monkeypatch, tmp_path):
    monkeypatch.setenv("TENSORPLUG_FALLBACK", "error")
    monkeypatch.setenv("TENSORPLUG_XLA_CACHE", str(tmp_path / "kept"))
    with isolated_engine("xla") as engine:
        assert tp.get_backend() == "xla"
        yield engine
