"""The engine's source of backends: the installed plugins."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract import signatures
from tensorplug.contract.arguments import quoted
from tensorplug.contract.owner import PROGRAM
from tensorplug.dispatch.locks import Lock
from tensorplug.engine.engine import Opened
from tensorplug.errors import (
    ArgumentError,
    BackendUnavailableError,
    PluginLoadError,
    PluginWarning,
    RegistrationError,
    TensorplugError,
)
from tensorplug.plugins import contributions, garbage_collection, metadata, provisional
from tensorplug.plugins.loader import CREATE, DEVICES, Loader, call_guarded
from tensorplug.plugins.metadata import (
    BACKENDS,
    EXTENSIONS,
    BackendInfo,
    Candidate,
    ExtensionInfo,
    ProgramEntry,
)
from tensorplug.plugins.selection import Selection
from tensorplug.system import notices
from tensorplug.system.foreign_text import cause_of, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tensorplug.contract.backend import Backend, DeviceInfo
    from tensorplug.contract.owner import Owner
    from tensorplug.contract.tables import KernelTable
    from tensorplug.engine.registry import Registry
    from tensorplug.plugins.contributions import Rules
    from tensorplug.plugins.loader import Plugin
    from tensorplug.plugins.metadata import State


_LOADED: Final[tuple[State, str]] = ("loaded", "")


class PluginSource:
    """Opens the installed backends and collects what extensions add to each.

    A plugin that fails to load is not tried again; its error is kept and raised at every request.
    """

    def __init__(self, selection: Selection, registry: Registry) -> None:
        self._selection = selection
        self._registry = registry
        self._loader = Loader()
        self._lock = Lock()
        self._plugins: dict[Candidate, Plugin] = {}
        self._errors: dict[Candidate, TensorplugError] = {}
        self._outcomes: dict[Candidate, tuple[State, str]] = {}
        self._with_rules: set[Candidate] = set()  # the backends whose rules are registered
        self._kernel_tables: dict[Candidate, list[tuple[Owner, KernelTable]]] = {}
        self._opening: set[str] = set()
        self._registered: list[Candidate] = []  # by the running program

    # For the engine -------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the backends to choose from, the preferred one first.

        If the settings disable all backends, return these, so that the error can say so.
        """
        enabled = self._selection.names(BACKENDS)
        candidates = self._selection.candidates
        return enabled or sorted(
            {candidate.name for candidate in candidates if candidate.group == BACKENDS}
        )

    def explain_unknown(self, name: str) -> str:
        """Return what is wrong with the name of a backend that no plugin has; "" if one has it."""
        with self._lock:
            return self._selection.explain_unknown(name)

    def devices(self, name: str) -> list[DeviceInfo] | None:
        """Return the devices that a backend lists, number 0 first; None if it lists none.

        Raises: as ``open``, except for errors of one device.
        """
        with self._lock:
            plugin = self._load(self._pick(name))
            listed = self._loader.call(plugin, DEVICES)
            check = partial(contributions.device_infos, plugin.candidate, *listed)
            return call_guarded(plugin.candidate, f"in {DEVICES}", check) if listed else None

    def open(self, name: str, device: str | None) -> Opened:
        """Open a backend, and collect its kernels from its own plugin and from extensions.

        Raises:
            BackendNotInstalledError, PluginCollisionError, PluginVersionError: from metadata.
            BackendUnavailableError: with the backend's reason, or the setting that disables it.
            PluginLoadError: its import or a hook raised.
            RegistrationError: its hooks, its backend object or its kernels do not fit.
            ArgumentError: it has no such device.

        """
        with self._lock:
            candidate = self._pick(name)
            if name in self._opening:
                raise PluginLoadError(
                    f"{candidate} uses the backend while it is being opened; a plugin must not "
                    "run ops when it is imported or creates its backend"
                )
            try:
                self._opening.add(name)
                with garbage_collection.paused():
                    return self._open(candidate, device)
            except TensorplugError as error:
                # If another device of the backend is open, its state does not change.
                if self._outcomes.get(candidate) != _LOADED:
                    self._outcomes[candidate] = ("failed", str(error))
                raise
            finally:
                self._opening.discard(name)

    def _open(self, candidate: Candidate, device: str | None) -> Opened:
        plugin = self._load(candidate)
        with provisional.undone_on_failure():
            backend = self._create(plugin, device)
            try:
                check = partial(contributions.check_backend, candidate, backend)
                call_guarded(candidate, "while its backend was checked", check)
                tables = self._tables(plugin, backend)
            except BaseException as error:  # an interrupt too, and warnings made errors
                _abandon(backend, error)
                raise
        self._outcomes[candidate] = _LOADED
        return Opened(backend, candidate.owner, tuple(tables))

    # Backends of the running program ----------------------------------------------------

    def register(self, name: object, plugin: Any, priority: int) -> None:
        """Take a plugin object as the backend ``name``.

        Raises:
            RegistrationError: the name is taken, or the plugin's hooks do not fit.
            ArgumentError: the name is not valid.

        """
        if not isinstance(name, str) or not metadata.PLUGIN_NAME.fullmatch(name):
            raise ArgumentError(
                f"{quoted(name)} cannot be the name of a backend: use letters and digits, with . "
                "_ and - between them"
            )
        if name in metadata.RESERVED:
            raise ArgumentError(f"{name!r} is reserved, and cannot be the name of a backend")
        with self._lock:
            self._refresh()
            for candidate in self._selection.candidates:
                if (candidate.group, candidate.name) == (BACKENDS, name):
                    raise RegistrationError(f"the name is taken by {candidate}")
            entry = ProgramEntry(plugin, signatures.location(plugin))
            candidate = Candidate(
                BACKENDS, name, PROGRAM.distribution, "", entry, priority=priority
            )
            self._plugins[candidate] = self._loader.load(candidate)
            self._registered.append(candidate)
            self._refresh()

    def unregister(self, name: str) -> bool:
        """Forget the backend ``name`` if the running program registered it; return whether."""
        with self._lock:
            for candidate in self._registered:
                if candidate.name == name:
                    self._registered.remove(candidate)
                    self._loader.unload(self._plugins.pop(candidate))
                    for records in (self._outcomes, self._kernel_tables):
                        records.pop(candidate, None)
                    self._with_rules.discard(candidate)
                    self._refresh()
                    return True
            return False

    # Loading --------------------------------------------------------------------------

    def load_extensions(self) -> None:
        """Load every extension and register its rules; warn of those that are broken."""
        with self._lock:
            for name in self._selection.names(EXTENSIONS):
                try:
                    candidate = self._selection.pick(EXTENSIONS, name)
                except TensorplugError as error:  # the listing says the same, from metadata
                    _warn(error)
                    continue
                try:
                    plugin = self._load(candidate)
                    self._register_rules(plugin, contributions.collect_rules(self._loader, plugin))
                    self._outcomes[candidate] = _LOADED
                except TensorplugError as error:
                    self._plugins.pop(candidate, None)
                    self._outcomes[candidate] = ("failed", str(error))
                    _warn(error)

    def _pick(self, name: str) -> Candidate:
        known = any(
            (candidate.group, candidate.name) == (BACKENDS, name)
            for candidate in self._selection.candidates
        )
        if not known:
            self._refresh()
        return self._selection.pick(BACKENDS, name)

    def _refresh(self) -> None:
        """Read the metadata again: plugins may be installed while a notebook runs."""
        candidates = (*metadata.candidates(), *self._registered)
        self._selection = Selection(candidates, self._selection.settings)

    def _load(self, candidate: Candidate) -> Plugin:
        stored = self._errors.get(candidate)
        if stored is not None:  # a new error, because the traceback of one would grow
            raise type(stored)(str(stored)) from stored.__cause__
        if candidate not in self._plugins:
            try:
                with provisional.undone_on_failure():
                    self._plugins[candidate] = self._loader.load(candidate)
            except TensorplugError as error:
                self._errors[candidate] = error
                raise
        return self._plugins[candidate]

    def _create(self, plugin: Plugin, device: str | None) -> Backend:
        created = self._loader.call(plugin, CREATE, device=device)
        if not created:
            what = "no device" if device is None else f"no device {device!r}"
            raise BackendUnavailableError(
                f"{plugin.candidate} is not available here: it found {what} and gave no reason"
            )
        return created[0]  # type: ignore[no-any-return]  # checked by the caller

    # Registering ----------------------------------------------------------------------

    def _register_rules(self, plugin: Plugin, rules: Rules) -> None:
        owner = plugin.candidate.owner
        register = partial(contributions.register_rules, self._registry, owner, rules)
        call_guarded(plugin.candidate, "while it was registered", register)

    def _tables(self, plugin: Plugin, backend: Backend) -> list[tuple[Owner, KernelTable]]:
        """Return the kernel tables that the engine must register for a newly opened backend.

        Everything is first tried on a copy of the registry, so that the engine's registration
        cannot fail half way. An invalid table of the backend is an error; one of an extension is
        left out, with a warning.
        """
        known = self._kernel_tables.get(plugin.candidate)
        if known is not None:  # from another device of this backend
            return known
        copy = contributions.copied_registry(self._registry)
        first = plugin.candidate not in self._with_rules  # else an interrupt came after its rules
        rules = contributions.collect_rules(self._loader, plugin) if first else None
        tables = self._checked_tables(copy, plugin, backend, rules)
        if rules is not None:
            self._register_rules(plugin, rules)
            self._with_rules.add(plugin.candidate)
        for extension in self._extensions():
            try:
                tables += self._checked_tables(copy, extension, backend)
            except TensorplugError as error:
                self._outcomes[extension.candidate] = ("failed", str(error))
                _warn(error)
        self._kernel_tables[plugin.candidate] = tables
        return tables

    def _checked_tables(
        self, copy: Registry, plugin: Plugin, backend: Backend, rules: Rules | None = None
    ) -> list[tuple[Owner, KernelTable]]:
        """Return a plugin's tables for ``backend`` after adding all of them to ``copy``."""
        owner = plugin.candidate.owner
        tables = contributions.collect_kernels(self._loader, plugin, backend)
        add = partial(
            copy.add,
            owner,
            kernels=[(backend.name, entry) for table in tables for entry in table],
            rules=rules.rules if rules else (),
            decompositions=rules.decompositions if rules else (),
        )
        call_guarded(plugin.candidate, "while it was registered", add)
        return [(owner, table) for table in tables]

    def _extensions(self) -> Iterator[Plugin]:
        yield from (
            plugin
            for candidate, plugin in list(self._plugins.items())
            if candidate.group == EXTENSIONS
        )

    # For tools ------------------------------------------------------------------------

    def packages(self) -> list[str]:
        """Return the packages of the loaded plugins, without those of the running program."""
        entries = [candidate.entry for candidate in list(self._plugins)]
        names = [entry.module for entry in entries if not isinstance(entry, ProgramEntry)]
        modules = [sys.modules[name] for name in names if name in sys.modules]
        return [module.__package__ or module.__name__ for module in modules]

    def backends(self) -> list[BackendInfo]:
        """Return the installed backends with their states; import none."""
        with self._lock:
            self._refresh()
            return self._selection.listing(BACKENDS, BackendInfo, self._outcomes)

    def extensions(self) -> list[ExtensionInfo]:
        """Return the installed extensions with their states; import none."""
        with self._lock:
            self._refresh()
            return self._selection.listing(EXTENSIONS, ExtensionInfo, self._outcomes)

    def diagnostics(self, name: str) -> Mapping[str, str]:
        """Return what the plugin of backend ``name`` reports about its drivers.

        The plugin is loaded if it was not yet.

        Raises: as ``open``, except for errors of the hardware.
        """
        with self._lock:
            plugin = self._load(self._pick(name))
            versions: dict[str, str] = {}
            hook = "tensorplug_diagnostics"
            for result in self._loader.call(plugin, hook):
                read = partial(_texts, result)
                versions.update(call_guarded(plugin.candidate, f"in {hook}", read))
            return versions


def _texts(result: Any) -> dict[str, str]:
    items: dict[Any, Any] = dict(result)
    return {printable(str(key)): printable(str(value)) for key, value in items.items()}


def _warn(error: TensorplugError) -> None:
    notices.warn(f"left out: {error}", PluginWarning)


def _abandon(backend: Any, error: BaseException) -> None:
    """Close a backend that will not be used; if that fails, add a note to ``error``."""
    try:
        if hasattr(backend, "close"):  # else it is not a backend
            backend.close()
    except KeyboardInterrupt:
        raise
    except BaseException as closing:  # noqa: BLE001  # `error` came first
        error.add_note(f"closing it raised {cause_of(closing)}")
