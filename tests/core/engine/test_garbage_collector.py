"""The garbage collector rests while an engine is built and a backend opens, and only then."""

from __future__ import annotations

import gc

import pytest

from tensorplug.plugins import assembly
from tensorplug.plugins.garbage_collection import paused
from tensorplug.plugins.source import PluginSource


@pytest.fixture(params=[True, False])
def enabled(request):
    """Begin with the collector enabled or not."""
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def test_it_is_left_as_it_was(enabled):
    with paused():
        assert not gc.isenabled()
        with paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled() is enabled


def test_an_error_does_not_leave_it_off(enabled):
    with pytest.raises(KeyError), paused():
        raise KeyError
    assert gc.isenabled() is enabled


def test_building_and_opening_pause_it(monkeypatch, enabled):
    seen = []
    registry, open_ = assembly.core_registry, PluginSource._open

    def built():
        seen.append(gc.isenabled())
        return registry()

    def opened(self, *args):
        seen.append(gc.isenabled())
        return open_(self, *args)

    monkeypatch.setattr(assembly, "core_registry", built)
    monkeypatch.setattr(PluginSource, "_open", opened)
    engine = assembly.build_engine()
    engine.open("cpu")
    assert seen == [False, False]
    assert gc.isenabled() is enabled
