"""The installed plugins, as ``tp.backends()`` lists them, without importing any."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from tensorplug.dispatch.context import ROOT, current_context
from tensorplug.plugins import garbage_collection
from tensorplug.plugins.metadata import BackendInfo, ExtensionInfo
from tensorplug.plugins.selection import Selection

__all__ = ["BackendInfo", "ExtensionInfo", "backends", "extensions"]


@runtime_checkable
class Lists(Protocol):
    """An engine's source that knows which plugins it has loaded, and which failed."""

    def backends(self) -> list[BackendInfo]:
        """Return the installed backends."""

    def extensions(self) -> list[ExtensionInfo]:
        """Return the installed extensions."""


def backends() -> list[BackendInfo]:
    """Return the installed backends by name, importing none of them.

    If there is an engine, the states of its backends are included.
    """
    with garbage_collection.paused():
        return _source().backends()


def extensions() -> list[ExtensionInfo]:
    """Return the installed extensions by name, importing none of them."""
    with garbage_collection.paused():
        return _source().extensions()


def _source() -> Lists:
    engine = current_context().engine or ROOT.engine
    source = getattr(getattr(engine, "devices", None), "source", None)
    return source if isinstance(source, Lists) else Selection.read()
