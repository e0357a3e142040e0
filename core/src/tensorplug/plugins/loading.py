"""Importing one plugin and calling its hooks, so that whatever it raises hurts nobody else."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pluggy

from tensorplug.contract import hooks, signatures
from tensorplug.errors import (
    ArgumentError,
    BackendUnavailableError,
    PluginLoadError,
    RegistrationError,
    SettingsError,
)
from tensorplug.plugins.metadata import BACKENDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug.plugins.metadata import Claim

__all__ = ["CREATE", "DEVICES", "Loader", "Plugin", "guarded", "refused"]

T = TypeVar("T")

CREATE: Final = "tensorplug_create_backend"
DEVICES: Final = "tensorplug_devices"
_SINGLE: Final = (CREATE, DEVICES)  # firstresult: one value or None
_MARK: Final = f"{hooks.PROJECT}_impl"  # the attribute that pluggy's hookimpl leaves


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin that was imported and whose hooks fit."""

    claim: Claim
    module: Any


class Loader:
    """The plugins of one engine, in one pluggy plugin manager."""

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager(hooks.PROJECT)
        self._manager.add_hookspecs(hooks)

    def load(self, claim: Claim) -> Plugin:
        """Import a plugin and register its hooks.

        Raises:
            PluginLoadError: when its import raises, ``SystemExit`` included.
            RegistrationError: when a hook is misspelt or asks for what it may not.

        """
        importlib.invalidate_caches()  # it may have been installed while we run
        module = guarded(claim, "while it was imported", claim.entry.load)
        guarded(claim, "while its hooks were read", partial(self._check, claim, module))
        guarded(claim, "while it was registered", partial(self._register, claim, module))
        return Plugin(claim, module)

    def _register(self, claim: Claim, module: Any) -> None:
        try:
            self._manager.register(module, name=f"{claim.group}:{claim.name}")
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            if self._manager.is_registered(module):
                self._manager.unregister(module)
            raise RegistrationError(str(error)) from error

    def call(self, plugin: Plugin, hook: str, **arguments: Any) -> list[Any]:
        """Call one hook of one plugin; return its results, at most one per function.

        Raises:
            PluginLoadError: when it raises.
            RegistrationError: when it raises that, or returns None where a value is due.
            BackendUnavailableError, ArgumentError: as raised by it, with the plugin's name.

        """
        others = [
            get_plugin
            for get_plugin in self._manager.get_plugins()
            if get_plugin is not plugin.module
        ]
        caller = self._manager.subset_hook_caller(hook, others)
        result = guarded(plugin.claim, f"in {hook}", partial(caller, **arguments))
        if hook in _SINGLE:
            return [] if result is None else [result]
        implementations = [
            get_hookimpl
            for get_hookimpl in caller.get_hookimpls()
            if not (get_hookimpl.wrapper or get_hookimpl.hookwrapper)
        ]
        if len(result) < len(implementations):  # pluggy leaves out what is None
            raise RegistrationError(f"{plugin.claim}: {hook} returned None; return () for nothing")
        return list(result)

    def unload(self, plugin: Plugin) -> None:
        """Forget a plugin, so that another may be loaded under its name."""
        self._manager.unregister(plugin.module)

    def _check(self, claim: Claim, module: Any) -> None:
        found = dict(self._hooks(module))
        if claim.group == BACKENDS and CREATE not in found:
            raise RegistrationError(f"has no hook {CREATE}, which every backend plugin must have")
        if claim.group != BACKENDS and CREATE in found:
            raise RegistrationError(
                f"{signatures.location(found[CREATE])} creates a backend, but the entry point "
                f"is in the group {claim.group}; it belongs in {BACKENDS}"
            )
        for hook, function in found.items():
            _check_parameters(hook, function, self._known()[hook])

    def _hooks(self, module: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
        """Yield the hooks that ``module`` implements.

        Raises:
            RegistrationError: when a function is marked or named like a hook, but is none.

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
                        "not marked with @hookimpl of tensorplug.contract.hooks"
                    )
                continue
            hook = mark.get("specname") or name
            if hook in known:
                yield hook, function
            elif not mark.get("optionalhook"):
                near = get_close_matches(hook, known, n=1)
                hint = f"did you mean {near[0]}? " if near else ""
                raise RegistrationError(
                    f"{signatures.location(function)} implements {hook}, which is no hook; "
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
        # pluggy would not pass these, and the plugin would never know.
        if parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty:
            raise RegistrationError(
                f"{role}: {signatures.location(function)} takes {parameter}; hooks take plain "
                f"parameters without defaults: {parameter.name}"
            )


def guarded(claim: Claim, when: str, function: Callable[[], T]) -> T:
    """Call what belongs to a plugin; raise our own errors naming it, whatever it raises.

    Raises:
        PluginLoadError: naming backend, distribution, version, entry point, cause and how to
            skip it. Ctrl-C alone passes.
        RegistrationError, BackendUnavailableError, ArgumentError, SettingsError: as raised,
            with its name.

    """
    try:
        return function()
    except KeyboardInterrupt:
        raise
    except RegistrationError as error:
        raise refused(claim, str(error)) from error
    except BackendUnavailableError as error:
        raise BackendUnavailableError(f"{claim} is not available here: {error}") from error
    except (ArgumentError, SettingsError) as error:
        raise type(error)(f"{claim}: {error}") from error
    except BaseException as error:  # SystemExit and its like must not end the program
        cause = f"{type(error).__name__}: {error}".removesuffix(": ")
        what = f"entry point {claim.name} = " if claim.installed else ""
        raise PluginLoadError(
            f"{claim} ({what}{claim.entry.value}) raised {cause} {when}{_skip(claim)}"
        ) from error


def refused(claim: Claim, reason: str) -> RegistrationError:
    """Return the error for what a plugin hands over but must not."""
    return RegistrationError(f"{claim}: {reason}{_skip(claim)}")


def _skip(claim: Claim) -> str:
    return f". To skip it: TENSORPLUG_DISABLE_PLUGINS={claim.name}" if claim.installed else ""
