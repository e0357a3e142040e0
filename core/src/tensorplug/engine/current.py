"""The engine of the current context, for code that needs more of it than ops do.

The engine is built at first use and not imported here, so that importing the package is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tensorplug.dispatch.context import current_context, engine_of

if TYPE_CHECKING:
    from tensorplug.engine.engine import Engine


def current_engine() -> Engine:
    """Return the engine of this thread or task, building the default one if necessary."""
    return cast("Engine", engine_of(current_context()))
