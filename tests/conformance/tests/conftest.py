"""Fixtures of the suite's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tensorplug_conformance.session import Session, engine_factory

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def cpu() -> Iterator[Session]:
    """An engine of its own on the cpu backend."""
    session = Session(engine_factory(None), "cpu")
    yield session
    session.close()
