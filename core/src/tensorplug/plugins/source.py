"""The engine's source of backends: the installed plugins."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract import signatures
from tensorplug.contract.owner import PROGRAM
from tensorplug.dispatch.locks import Lock
from tensorplug.engine import notices
from tensorplug.engine.engine import Opened
from tensorplug.errors import (
    ArgumentError,
    BackendUnavailableError,
    PluginLoadError,
    PluginWarning,
    RegistrationError,
    TensorplugError,
)
from tensorplug.plugins import collecting, contributions, metadata
from tensorplug.plugins.loading import CREATE, DEVICES, Loader, guarded
from tensorplug.plugins.metadata import (
    BACKENDS,
    EXTENSIONS,
    BackendInfo,
    Claim,
    ExtensionInfo,
    Given,
)
from tensorplug.plugins.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tensorplug.contract.backend import Backend, DeviceInfo
    from tensorplug.contract.owner import Owner
    from tensorplug.contract.tables import KernelTable
    from tensorplug.engine.registry import Registry
    from tensorplug.plugins.contributions import Rules
    from tensorplug.plugins.loading import Plugin
    from tensorplug.plugins.metadata import State

__all__ = ["PluginSource"]

_LOADED: Final[tuple[State, str]] = ("loaded", "")


class PluginSource:
    """Opens the installed backends, and asks the extensions for what they add to each.

    A plugin that fails to load is not tried again; its error is kept, and raised whenever it
    is asked for.
    """

    def __init__(self, selection: Selection, registry: Registry) -> None:
        self._selection = selection
        self._registry = registry
        self._loader = Loader()
        self._lock = Lock()
        self._plugins: dict[Claim, Plugin] = {}
        self._errors: dict[Claim, TensorplugError] = {}
        self._outcomes: dict[Claim, tuple[State, str]] = {}
        self._ruled: set[Claim] = set()  # the backends whose rules are registered
        self._gathered: dict[Claim, list[tuple[Owner, KernelTable]]] = {}
        self._opening: set[str] = set()
        self._given: list[Claim] = []  # by the running program

    # What an engine asks --------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the backends to choose from, ``cpu`` first.

        Where the settings leave none, those they disable, so that the error can say so.
        """
        enabled = self._selection.names(BACKENDS)
        claims = self._selection.claims
        return enabled or sorted({claim.name for claim in claims if claim.group == BACKENDS})

    def devices(self, name: str) -> list[DeviceInfo] | None:
        """Return what devices a backend says it has, number 0 first; None if it does not say.

        Raises: as ``open``, except what concerns one device.
        """
        with self._lock:
            plugin = self._load(self._pick(name))
            found = self._loader.call(plugin, DEVICES)
            check = partial(contributions.device_infos, plugin.claim, *found)
            return guarded(plugin.claim, f"in {DEVICES}", check) if found else None

    def open(self, name: str, device: str | None) -> Opened:
        """Open a backend and gather its kernels, from its own plugin and from extensions.

        Raises:
            BackendNotInstalledError, PluginCollisionError, PluginVersionError: from metadata.
            BackendUnavailableError: with the backend's own reason, or what disables it.
            PluginLoadError: its import or a hook raised.
            RegistrationError: its hooks, its backend object or its kernels do not fit.
            ArgumentError: it has no such device.

        """
        with self._lock:
            claim = self._pick(name)
            if name in self._opening:
                raise PluginLoadError(
                    f"{claim} uses the backend while it is being opened; a plugin must not run "
                    "ops when it is imported or creates its backend"
                )
            self._opening.add(name)
            try:
                with collecting.paused():
                    return self._open(claim, device)
            except TensorplugError as error:
                # Another device of it may be open; then one that is missing changes nothing.
                if self._outcomes.get(claim) != _LOADED:
                    self._outcomes[claim] = ("failed", str(error))
                raise
            finally:
                self._opening.discard(name)

    def _open(self, claim: Claim, device: str | None) -> Opened:
        plugin = self._load(claim)
        backend = self._create(plugin, device)
        try:
            check = partial(contributions.check_backend, claim, backend)
            guarded(claim, "while its backend was checked", check)
            tables = self._tables(plugin, backend)
        except BaseException as error:  # an interrupt too, and warnings made errors
            _abandon(backend, error)
            raise
        self._outcomes[claim] = _LOADED
        return Opened(backend, claim.owner, tuple(tables))

    # What the running program brings ---------------------------------------------------

    def register(self, name: object, plugin: Any, priority: int) -> None:
        """Take a plugin object as the backend ``name``.

        Raises:
            RegistrationError: the name is taken, or the plugin's hooks do not fit.
            ArgumentError: no backend can be called so.

        """
        if not isinstance(name, str) or not metadata.PLUGIN_NAME.fullmatch(name):
            raise ArgumentError(
                f"a backend cannot be called {name!r}; its name must be of letters, digits and, "
                "between them, . _ and -"
            )
        if name in metadata.RESERVED:
            raise ArgumentError(f"a backend cannot be called {name!r}, which is reserved")
        with self._lock:
            self._refresh()
            for claim in self._selection.claims:
                if (claim.group, claim.name) == (BACKENDS, name):
                    raise RegistrationError(f"the name is taken by {claim}")
            entry = Given(plugin, signatures.location(plugin))
            claim = Claim(BACKENDS, name, PROGRAM.distribution, "", entry, priority=priority)
            self._plugins[claim] = self._loader.load(claim)
            self._given.append(claim)
            self._refresh()

    def unregister(self, name: str) -> bool:
        """Forget the backend ``name`` if the running program brought it; say whether it did."""
        with self._lock:
            for claim in self._given:
                if claim.name == name:
                    self._given.remove(claim)
                    self._loader.unload(self._plugins.pop(claim))
                    for memory in (self._outcomes, self._gathered):
                        memory.pop(claim, None)
                    self._ruled.discard(claim)
                    self._refresh()
                    return True
            return False

    # Loading --------------------------------------------------------------------------

    def load_extensions(self) -> None:
        """Load every extension and register its rules; warn of those that are broken."""
        with self._lock:
            for name in self._selection.names(EXTENSIONS):
                try:
                    claim = self._selection.pick(EXTENSIONS, name)
                except TensorplugError as error:  # the listing says the same, from metadata
                    _warn(error)
                    continue
                try:
                    plugin = self._load(claim)
                    self._register_rules(plugin, contributions.rules(self._loader, plugin))
                    self._outcomes[claim] = _LOADED
                except TensorplugError as error:
                    self._plugins.pop(claim, None)
                    self._outcomes[claim] = ("failed", str(error))
                    _warn(error)

    def _pick(self, name: str) -> Claim:
        known = any(
            (claim.group, claim.name) == (BACKENDS, name) for claim in self._selection.claims
        )
        if not known:
            self._refresh()
        return self._selection.pick(BACKENDS, name)

    def _refresh(self) -> None:
        """Read the metadata again: plugins come and go while a notebook runs."""
        claims = (*metadata.claims(), *self._given)
        self._selection = Selection(claims, self._selection.settings)

    def _load(self, claim: Claim) -> Plugin:
        stored = self._errors.get(claim)
        if stored is not None:  # a new one each time, or its traceback would grow
            raise type(stored)(str(stored)) from stored.__cause__
        if claim not in self._plugins:
            try:
                self._plugins[claim] = self._loader.load(claim)
            except TensorplugError as error:
                self._errors[claim] = error
                raise
        return self._plugins[claim]

    def _create(self, plugin: Plugin, device: str | None) -> Backend:
        created = self._loader.call(plugin, CREATE, device=device)
        if not created:
            what = "no device" if device is None else f"no device {device!r}"
            raise BackendUnavailableError(
                f"{plugin.claim} is not available here: it found {what}, and gave no reason"
            )
        return created[0]  # type: ignore[no-any-return]  # checked by the caller

    # Registering ----------------------------------------------------------------------

    def _register_rules(self, plugin: Plugin, rules: Rules) -> None:
        owner = plugin.claim.owner
        register = partial(contributions.register_rules, self._registry, owner, rules)
        guarded(plugin.claim, "while it was registered", register)

    def _tables(self, plugin: Plugin, backend: Backend) -> list[tuple[Owner, KernelTable]]:
        """Return what the engine must register for a backend that was just opened.

        Everything is tried on a copy of the registry first, so that the engine's own
        registration cannot fail half way. A backend's own mistakes are errors; an extension's
        leave out what it has for this backend, with a warning.
        """
        done = self._gathered.get(plugin.claim)
        if done is not None:  # for another device of this backend
            return done
        copy = contributions.rehearsal(self._registry)
        first = plugin.claim not in self._ruled  # else what follows was interrupted once
        rules = contributions.rules(self._loader, plugin) if first else None
        found = self._rehearsed(copy, plugin, backend, rules)
        if rules is not None:
            self._register_rules(plugin, rules)
            self._ruled.add(plugin.claim)
        for extension in self._extensions():
            try:
                found += self._rehearsed(copy, extension, backend)
            except TensorplugError as error:
                self._outcomes[extension.claim] = ("failed", str(error))
                _warn(error)
        self._gathered[plugin.claim] = found
        return found

    def _rehearsed(
        self, copy: Registry, plugin: Plugin, backend: Backend, rules: Rules | None = None
    ) -> list[tuple[Owner, KernelTable]]:
        """Return a plugin's tables for ``backend`` once all of it fits into ``copy``."""
        owner = plugin.claim.owner
        tables = contributions.kernels(self._loader, plugin, backend)
        add = partial(
            copy.add,
            owner,
            kernels=[(backend.name, entry) for table in tables for entry in table],
            gradients=rules.gradients if rules else (),
            decompositions=rules.decompositions if rules else (),
        )
        guarded(plugin.claim, "while it was registered", add)
        return [(owner, table) for table in tables]

    def _extensions(self) -> Iterator[Plugin]:
        yield from (
            plugin for claim, plugin in list(self._plugins.items()) if claim.group == EXTENSIONS
        )

    # What tools ask -------------------------------------------------------------------

    def packages(self) -> list[str]:
        """Return the packages of the loaded plugins, but for those of the running program."""
        entries = [claim.entry for claim in list(self._plugins)]
        names = [entry.module for entry in entries if not isinstance(entry, Given)]
        modules = [sys.modules[name] for name in names if name in sys.modules]
        return [module.__package__ or module.__name__ for module in modules]

    def backends(self) -> list[BackendInfo]:
        """Return the installed backends with what became of them; imports none."""
        with self._lock:
            self._refresh()
            return self._selection.listing(BACKENDS, BackendInfo, self._outcomes)

    def extensions(self) -> list[ExtensionInfo]:
        """Return the installed extensions with what became of them; imports none."""
        with self._lock:
            self._refresh()
            return self._selection.listing(EXTENSIONS, ExtensionInfo, self._outcomes)

    def diagnostics(self, name: str) -> Mapping[str, str]:
        """Return what the plugin of backend ``name`` says of its drivers, loading it if need be.

        Raises: as ``open``, except what concerns the hardware.
        """
        with self._lock:
            plugin = self._load(self._pick(name))
            found: dict[str, str] = {}
            hook = "tensorplug_diagnostics"
            for result in self._loader.call(plugin, hook):
                items: dict[Any, Any] = guarded(plugin.claim, f"in {hook}", partial(dict, result))
                found.update((str(key), str(value)) for key, value in items.items())
            return found

    def conformance_cases(self) -> list[tuple[Owner, Any]]:
        """Return the case tables of the plugins that are loaded, each with its owner.

        Raises:
            PluginLoadError, RegistrationError: naming the plugin whose hook fails.

        """
        hook = "tensorplug_conformance_cases"
        found: list[tuple[Owner, Any]] = []
        with self._lock:
            for plugin in self._plugins.values():
                for result in self._loader.call(plugin, hook):
                    tables = guarded(plugin.claim, f"in {hook}", partial(list[Any], result))
                    found += [(plugin.claim.owner, table) for table in tables]
        return found


def _warn(error: TensorplugError) -> None:
    notices.warn(f"left out: {error}", PluginWarning)


def _abandon(backend: Any, error: BaseException) -> None:
    """Close a backend that will not be used; add to ``error`` what that raises."""
    if not hasattr(backend, "close"):  # the error is that it is no backend at all
        return
    try:
        backend.close()
    except Exception as closing:  # noqa: BLE001  # the first error is the one to report
        error.add_note(f"closing it raised {type(closing).__name__}: {closing}")
