"""The folder on disk: where it is, and what turns it off."""

from __future__ import annotations

import pytest

from tensorplug_opencl.machine import cache_folder


@pytest.fixture
def home(monkeypatch):
    for name in ("XDG_CACHE_HOME", cache_folder.CACHE, "PYOPENCL_NO_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setattr("sys.platform", "linux")
    return monkeypatch


def test_the_place(home):
    assert cache_folder.find_folder().as_posix() == "/home/me/.cache/tensorplug-opencl"
    home.setenv(cache_folder.CACHE, "/mine")
    assert cache_folder.find_folder().as_posix() == "/mine"


@pytest.mark.parametrize(
    ("name", "value"), [(cache_folder.CACHE, "0"), ("PYOPENCL_NO_CACHE", "1")]
)
def test_no_place(home, name, value):
    home.setenv(name, value)
    assert cache_folder.find_folder() is None
