"""A clock that kernels of known duration move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.core.support import clocks, engines

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[clocks.Clock]:
    """Yield a clock; kernels of known duration run on the engine in use."""
    made = clocks.Clock()
    with engines.using(clocks.engine(made, monkeypatch)):
        yield made
