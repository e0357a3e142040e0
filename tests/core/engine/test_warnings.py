"""Warnings point to the program's line, not into the package."""

from __future__ import annotations

import pytest
from tests.core.support import engines
from tests.core.support.engines import using

import tensorplug as tp
from tensorplug.errors import BackendUnavailableError, BackendWarning, FallbackWarning


def test_a_backend_that_was_passed_over():
    engine = engines.make(("first", "second"))
    engine.devices.source.refusals["first"] = BackendUnavailableError("no hardware")
    with using(engine), pytest.warns(BackendWarning) as caught:
        tp.asarray([1.0])
    assert caught[0].filename == __file__


def test_a_fallback_is_warned_of_at_the_callers_line():
    engine = engines.make({"bare": [], "full": [engines.basic_kernels()]}, fallback="warn")
    with using(engine):
        tp.set_backend("bare")
        x = tp.asarray([1.0])
        with pytest.warns(FallbackWarning) as caught:
            tp.exp(x)
    assert caught[0].filename == __file__


def test_a_warning_from_a_cached_function_points_past_functools():
    plugin = {"__name__": "tensorplug_acme"}
    source = """
from functools import cached_property
from tensorplug.plugin import BackendWarning, warn

class Device:
    @cached_property
    def lanes(self):
        warn("no room", BackendWarning, within=("tensorplug_acme",))
        return 8
"""
    exec(source, plugin)  # a module of a plugin
    with pytest.warns(BackendWarning, match="no room") as caught:
        assert plugin["Device"]().lanes == 8
    assert caught[0].filename == __file__
