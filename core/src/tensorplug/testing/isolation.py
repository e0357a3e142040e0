"""An engine of one's own, so that a test may remove what others need."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tensorplug.dispatch.context import Context, use_context
from tensorplug.plugins.assembly import build_engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.engine.engine import Engine

__all__ = ["isolated_engine"]


@contextmanager
def isolated_engine(backend: str | None = None) -> Iterator[Engine]:
    """Run a ``with`` block on a new engine with registries and devices of its own.

    What the block registers, removes or opens ends with it; tensors made in it should not be
    used after it. ``backend`` makes one the active backend; otherwise the engine chooses.

    Raises: what ``Engine.open`` raises.
    """
    engine = build_engine()
    device = engine.open(backend) if backend else None
    try:
        with use_context(Context(engine, device)):
            yield engine
    finally:
        for item in engine.devices.listed():
            engine.devices.close(item.name)
