"""Imports a plugin and calls its hooks; an error names the plugin and harms no other one."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pluggy

from tensorplug import errors
from tensorplug.contract import hooks, signatures
from tensorplug.errors import (
    ArgumentError,
    BackendUnavailableError,
    PluginLoadError,
    RegistrationError,
    SettingsError,
)
from tensorplug.plugins.metadata import BACKENDS
from tensorplug.system.foreign_text import cause_of, message_of, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug.plugins.metadata import Candidate


T = TypeVar("T")

CREATE: Final = "tensorplug_create_backend"
DEVICES: Final = "tensorplug_devices"
_SINGLE: Final = (CREATE, DEVICES)  # firstresult: one value or None
_MARK: Final = f"{hooks.PROJECT}_impl"  # the attribute that pluggy's hookimpl leaves


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin that was imported, with valid hooks."""

    candidate: Candidate
    module: Any


# Each hears of a plugin and of when, before code of that plugin runs, and of None afterwards. The
# doctor's probe listens, to tell which plugin hangs.
listeners: Final[list[Callable[[Candidate | None, str], None]]] = []


class Loader:
    """The plugins of one engine, in one pluggy plugin manager."""

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager(hooks.PROJECT)
        self._manager.add_hookspecs(hooks)

    def load(self, candidate: Candidate) -> Plugin:
        """Import a plugin and register its hooks.

        Raises:
            PluginLoadError: its import raises, even ``SystemExit``.
            RegistrationError: a hook is misspelt, or has an unknown parameter.

        """
        importlib.invalidate_caches()  # it may be newly installed
        module = call_guarded(candidate, "while it was imported", candidate.entry.load)
        call_guarded(
            candidate, "while its hooks were read", partial(self._check, candidate, module)
        )
        call_guarded(
            candidate, "while it was registered", partial(self._register, candidate, module)
        )
        return Plugin(candidate, module)

    def _register(self, candidate: Candidate, module: Any) -> None:
        try:
            self._manager.register(module, name=f"{candidate.group}:{candidate.name}")
            self._manager.check_pending()
        except BaseException as error:  # whatever attributes of the module raise
            if self._manager.is_registered(module):
                self._manager.unregister(module)
            if isinstance(error, pluggy.PluginValidationError):
                raise RegistrationError(message_of(error)) from error
            raise

    def call(self, plugin: Plugin, hook: str, **arguments: Any) -> list[Any]:
        """Call one hook of one plugin; return its results, at most one per function.

        Raises:
            PluginLoadError: the hook raises.
            RegistrationError: the hook raises it, or returns None instead of a value.
            BackendUnavailableError, ArgumentError: as raised by the hook, with the plugin's name.

        """
        others = [module for module in self._manager.get_plugins() if module is not plugin.module]
        caller = self._manager.subset_hook_caller(hook, others)
        result = call_guarded(plugin.candidate, f"in {hook}", partial(caller, **arguments))
        if hook in _SINGLE:
            return [] if result is None else [result]
        implementations = [
            implementation
            for implementation in caller.get_hookimpls()
            if not (implementation.wrapper or implementation.hookwrapper)
        ]
        if len(result) < len(implementations):  # pluggy drops None
            raise RegistrationError(
                f"{plugin.candidate}: {hook} returned None; return () for nothing"
            )
        return list(result)

    def unload(self, plugin: Plugin) -> None:
        """Forget a plugin, so that another may be loaded under its name."""
        self._manager.unregister(plugin.module)

    def _check(self, candidate: Candidate, module: Any) -> None:
        hooks = dict(self._hooks(module))
        if candidate.group == BACKENDS and CREATE not in hooks:
            raise RegistrationError(
                f"the hook {CREATE} is missing, which every backend plugin needs"
            )
        if candidate.group != BACKENDS and CREATE in hooks:
            raise RegistrationError(
                f"{signatures.location(hooks[CREATE])} creates a backend, but the entry point "
                f"is in the group {candidate.group}; it belongs in {BACKENDS}"
            )
        for hook, function in hooks.items():
            _check_parameters(hook, function, self._known()[hook])

    def _hooks(self, module: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
        """Yield the hooks that ``module`` implements.

        Raises:
            RegistrationError: a function is marked or named like a hook, but is not one.

        """
        known = self._known()
        for name in dir(module):
            function = getattr(module, name, None)
            if not inspect.isroutine(function):
                continue
            mark = getattr(function, _MARK, None)
            if mark is None:
                near = get_close_matches(name, known, n=1, cutoff=0.85)
                if name.startswith(f"{hooks.PROJECT}_") and near:
                    raise RegistrationError(
                        f"{signatures.location(function)} looks like the hook {near[0]}, but is "
                        "not marked with @hookimpl of tensorplug.plugin"
                    )
                continue
            hook = mark.get("specname") or name
            if hook in known:
                yield hook, function
            elif not mark.get("optionalhook"):
                near = get_close_matches(hook, known, n=1)
                hint = f"did you mean {near[0]}? " if near else ""
                raise RegistrationError(
                    f"{signatures.location(function)} implements {hook}, which is not a hook; "
                    f"{hint}The hooks are {', '.join(sorted(known))}"
                )

    def _known(self) -> dict[str, tuple[str, ...]]:
        """Return the parameters of every hook by its name."""
        callers = vars(self._manager.hook).items()
        return {name: caller.spec.argnames for name, caller in callers if caller.spec is not None}


def _check_parameters(hook: str, function: Callable[..., Any], may_ask: tuple[str, ...]) -> None:
    role = f"hook {hook}"
    signatures.check_names(function, role, may_ask)
    for parameter in signatures.parameters(function, role):
        # pluggy would silently leave these out.
        if parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty:
            raise RegistrationError(
                f"{role}: {signatures.location(function)} takes {parameter}; hooks take plain "
                f"parameters without defaults: {parameter.name}"
            )


def call_guarded(candidate: Candidate, when: str, function: Callable[[], T]) -> T:
    """Call a function of a plugin; convert whatever it raises to an error that names the plugin.

    Raises:
        PluginLoadError: with plugin, distribution, version, entry point, cause and how to skip
            the plugin. Only ``KeyboardInterrupt`` passes unchanged.
        RegistrationError, BackendUnavailableError, ArgumentError, SettingsError: as raised, with
            the plugin's name.

    """
    for listen in listeners:
        listen(candidate, when)
    try:
        return function()
    except KeyboardInterrupt:
        raise
    except RegistrationError as error:
        raise refusal(candidate, message_of(error)) from error
    except BackendUnavailableError as error:
        raise BackendUnavailableError(
            f"{candidate} is not available here: {message_of(error)}"
        ) from error
    except (ArgumentError, SettingsError) as error:
        # A class of the plugin's own may take other arguments.
        ours = next(kind for kind in type(error).__mro__ if kind.__module__ == errors.__name__)
        raise ours(f"{candidate}: {message_of(error)}") from error
    except BaseException as error:  # SystemExit must not end the program
        what = f"entry point {candidate.name} = " if candidate.installed else ""
        what += printable(candidate.entry.value)
        raise PluginLoadError(
            f"{candidate} ({what}) raised {cause_of(error)} {when}{_skip(candidate)}"
        ) from error
    finally:
        for listen in listeners:
            listen(None, when)


def refusal(candidate: Candidate, reason: str) -> RegistrationError:
    """Return the error for something invalid that a plugin returned."""
    return RegistrationError(f"{candidate}: {reason}{_skip(candidate)}")


def _skip(candidate: Candidate) -> str:
    return (
        f". To skip it: TENSORPLUG_DISABLE_PLUGINS={candidate.name}" if candidate.installed else ""
    )
