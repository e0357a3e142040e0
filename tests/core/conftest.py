"""Engines that no test shares with another, and a check that nothing is left switched on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tensorplug as tp
from tensorplug import dispatch as seam

from . import engines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.engine import Engine


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


@pytest.fixture(autouse=True)
def nothing_left_on() -> Iterator[None]:
    """Check that a test leaves no tape, no scope and no device behind in its context."""
    before = seam.current()
    yield
    after = seam.current()
    assert after is before
    assert (after.recording, after.scope) == (None, None)
