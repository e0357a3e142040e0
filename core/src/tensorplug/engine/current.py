"""The engine in use, for those who need more of it than an op does.

It is not imported here, but built when it is first asked for: importing the package must stay
cheap, and loads no engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tensorplug.dispatch.context import current_context, engine_of

if TYPE_CHECKING:
    from tensorplug.engine.engine import Engine

__all__ = ["current_engine"]


def current_engine() -> Engine:
    """Return the engine that answers in this thread or task, building the default one."""
    return cast("Engine", engine_of(current_context()))
