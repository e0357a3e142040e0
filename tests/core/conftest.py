"""Engines that no test shares with another, and a check that nothing is left switched on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.core.support import engines

import tensorplug as tp
from tensorplug.dispatch.context import current_context

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.engine.engine import Engine


@pytest.fixture
def engine() -> Iterator[Engine]:
    """Yield an engine with the backends "memory" and "other", in use."""
    made = engines.make(("memory", "other"))
    with engines.using(made):
        yield made


@pytest.fixture
def on_the_cpu() -> Iterator[None]:
    """Run on the installed CPU backend."""
    with tp.use_backend("cpu"):
        yield


@pytest.fixture
def own_engine() -> Iterator[None]:
    """Run on the installed CPU backend, with an engine of the test's own."""
    with tp.testing.isolated_engine("cpu"):
        yield


@pytest.fixture(autouse=True)
def nothing_left_on() -> Iterator[None]:
    """Check that a test leaves no tape, no scope and no device behind in its context."""
    before = current_context()
    yield
    after = current_context()
    assert after is before
    assert (after.recording, after.scope) == (None, None)
