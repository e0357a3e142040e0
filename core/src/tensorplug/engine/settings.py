"""The environment variables we read: one strict parser, read at first use, never at import."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, cast, get_args

from tensorplug.engine import notices
from tensorplug.errors import SettingsError, SettingsWarning

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["CHECKS", "DEFAULT_CHECKS", "Check", "Fallback", "Settings", "read"]

Fallback = Literal["error", "warn", "allow"]
Check = Literal["verify", "nan", "inf", "leaks"]

CHECKS: Final[tuple[Check, ...]] = get_args(Check)
DEFAULT_CHECKS: Final[frozenset[Check]] = frozenset({"verify", "nan", "inf"})

PREFIX = "TENSORPLUG_"
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment asks for.

    ``backends``: in order of preference (``TENSORPLUG_BACKEND=opencl,cpu``); empty for auto.
    ``allowed``: the only plugins to use, by name or as ``distribution:name``, which chooses
    between two that claim one name; None for all. ``denied``: plugins never loaded, written
    the same way. ``autoload``: whether plugins are used that ``allowed`` does not name.
    ``fallback``: what happens when a backend cannot run a kernel (``Engine``). ``debug``: the
    checks of ``tensorplug.debug`` that are made in the whole process.
    """

    backends: tuple[str, ...] = ()
    allowed: tuple[str, ...] | None = None
    denied: tuple[str, ...] = ()
    autoload: bool = True
    fallback: Fallback = "warn"
    debug: frozenset[Check] = frozenset()


def read(environ: Mapping[str, str] | None = None, *, backends: Iterable[str] = ()) -> Settings:
    """Parse ``environ`` (by default the process's own).

    ``backends`` are the names of the installed ones: variables that start with such a name,
    like ``TENSORPLUG_ACME_``, are that backend's own to parse. Any other unknown
    variable of ours gives a ``SettingsWarning``.

    Raises:
        SettingsError: naming the variable, its value and what is allowed.

    """
    given = {
        name: value.strip()
        for name, value in (os.environ if environ is None else environ).items()
        if name.startswith(PREFIX)
    }
    _warn_unknown(given, tuple(_prefix(name) for name in backends))
    preferred = _names(given.get("TENSORPLUG_BACKEND", ""))
    plugins = given.get("TENSORPLUG_PLUGINS")
    return Settings(
        backends=() if preferred == ("auto",) else preferred,
        allowed=None if plugins is None else _names(plugins),
        denied=_names(given.get("TENSORPLUG_DISABLE_PLUGINS", "")),
        autoload=_flag(given, "TENSORPLUG_AUTOLOAD", default=True),
        fallback=_fallback(given.get("TENSORPLUG_FALLBACK", "warn")),
        debug=_checks(given.get("TENSORPLUG_DEBUG", "")),
    )


_NAMES = ("BACKEND", "PLUGINS", "DISABLE_PLUGINS", "AUTOLOAD", "FALLBACK", "DEBUG")
_KNOWN = tuple(PREFIX + name for name in _NAMES)


def _names(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _flag(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    if name not in given:
        return default
    value = given[name].lower()
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise SettingsError(f"{name}={given[name]!r}: must be 0 or 1")


def _checks(value: str) -> frozenset[Check]:
    """Return the checks that ``TENSORPLUG_DEBUG`` asks for: by a flag, or by their names."""
    if value.lower() in _FALSE:
        return frozenset()
    if value.lower() in _TRUE:
        return DEFAULT_CHECKS
    names = _names(value)
    if not names or not set(names) <= set(CHECKS):
        raise SettingsError(
            f"TENSORPLUG_DEBUG={value!r}: must be 0, 1 or names of checks ({', '.join(CHECKS)})"
        )
    return frozenset(cast("tuple[Check, ...]", names))


def _fallback(value: str) -> Fallback:
    if value not in ("error", "warn", "allow"):
        raise SettingsError(f"TENSORPLUG_FALLBACK={value!r}: must be error, warn or allow")
    return cast("Fallback", value)


def _prefix(backend: str) -> str:
    """Return how the variables of a backend's own begin: ``TENSORPLUG_MY_GPU_``."""
    return PREFIX + re.sub(r"\W", "_", backend).upper() + "_"


def _warn_unknown(given: Mapping[str, str], owned: tuple[str, ...]) -> None:
    for name in given:
        if name in _KNOWN or name.startswith(owned):
            continue
        from difflib import get_close_matches  # only when something looks wrong

        # Without the prefix, which makes all of them look alike.
        near = get_close_matches(name.removeprefix(PREFIX), _NAMES, n=1)
        hint = f"did you mean {PREFIX}{near[0]}?" if near else f"known are {', '.join(_KNOWN)}"
        notices.warn(
            f"{name} is neither a variable of tensorplug nor of an installed backend; {hint}",
            SettingsWarning,
        )
