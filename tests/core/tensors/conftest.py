"""An engine that shares the host's memory, and a place for a file of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.core.support import engines, sharing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tensorplug.engine.engine import Engine


@pytest.fixture
def sharing_engine() -> Iterator[Engine]:
    """Yield an engine whose active backend shares its memory; "memory" does not."""
    made = sharing.make()
    with engines.using(made):
        yield made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a file that is not there yet."""
    return tmp_path / "model.safetensors"
