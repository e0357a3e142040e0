"""Building an engine from the core's own catalogue and the installed plugins."""

from __future__ import annotations

from contextvars import ContextVar
from itertools import chain
from typing import TYPE_CHECKING, Final

from tensorplug.compile.backward.programs import run_backward
from tensorplug.compile.control.flat import run_loop
from tensorplug.compile.decomposed import count_crossing, run_programs
from tensorplug.contract.owner import Owner
from tensorplug.dispatch.handlers import Handlers
from tensorplug.engine.engine import Engine
from tensorplug.engine.registry import Registry
from tensorplug.errors import RegistrationError
from tensorplug.introspection import tracebacks
from tensorplug.observers import debugging
from tensorplug.plugins import catalogue, garbage_collection, metadata
from tensorplug.plugins.selection import Selection
from tensorplug.plugins.source import PluginSource

if TYPE_CHECKING:
    from tensorplug.engine.settings import Settings


_building: Final[ContextVar[bool]] = ContextVar("tensorplug.building", default=False)


def build_engine(settings: Settings | None = None) -> Engine:
    """Return a new engine with the core's catalogue and the extensions; backends open later.

    ``settings`` default to those of the environment. A broken extension is left out with a
    ``PluginWarning``.

    Raises:
        SettingsError: an environment variable of tensorplug has an invalid value.
        RegistrationError: a plugin runs ops while it is imported.

    """
    if _building.get():
        raise RegistrationError("it runs an op while it is imported; a plugin must not")
    try:
        _building.set(True)
        with garbage_collection.paused():
            selection = Selection.read(settings)
            selection.warn_of_unknown()
            registry = core_registry()
            source = PluginSource(selection, registry)
            source.load_extensions()
    finally:
        _building.set(False)
    tracebacks.hide_from_pytest()
    chosen = selection.settings
    return Engine(
        source,
        registry,
        prefer=chosen.backends,
        fallback=chosen.fallback,
        wait_limit=chosen.wait_limit,
        observers=debugging.checks(chosen.debug),
        handlers=Handlers(run_programs, run_backward, run_loop, count_crossing),
    )


def core_registry() -> Registry:
    """Return a registry with the core's specs, rules and decompositions, and no kernels."""
    registry = Registry(catalogue.catalogue())
    registry.add(
        Owner(metadata.CORE, metadata.core_version()),
        rules=chain.from_iterable(catalogue.rules()),
        decompositions=chain.from_iterable(catalogue.decompositions()),
    )
    return registry
