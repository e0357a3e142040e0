"""Parsing the environment variables, at first use and never at import.

The exceptions are the default dtypes, constants of the process: ``contract.dtypes`` reads them.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from threading import TIMEOUT_MAX
from typing import TYPE_CHECKING, Final, Literal, cast, get_args

from tensorplug.errors import SettingsError, SettingsWarning
from tensorplug.system import notices

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


Fallback = Literal["error", "warn", "allow"]
Check = Literal["verify", "nan", "inf", "leaks"]
Traceback = Literal["short", "full"]

CHECKS: Final[tuple[Check, ...]] = get_args(Check)
DEFAULT_CHECKS: Final[frozenset[Check]] = frozenset({"verify", "nan", "inf"})

PREFIX = "TENSORPLUG_"
BUILD_NOTICE: Final = "TENSORPLUG_BUILD_NOTICE"
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the environment.

    ``backends``: in order of preference (``TENSORPLUG_BACKEND=opencl,cpu``); empty for auto.
    ``allowed``: the only plugins to use, by name, or as ``distribution:name`` if two have the
    same name; None for all. ``denied``: plugins never to load, in the same form. ``autoload``:
    whether to use plugins that ``allowed`` does not name. ``fallback``: the policy if a backend
    cannot run a kernel (``Engine``). ``debug``: the checks of ``tensorplug.debug`` that are
    active in the whole process. ``traceback``: whether tracebacks show the core's frames.
    ``build_notice``: whether a terminal shows that programs are being built. ``wait_limit``: the
    most seconds for which a call waits for a device; None: without limit.
    """

    backends: tuple[str, ...] = ()
    allowed: tuple[str, ...] | None = None
    denied: tuple[str, ...] = ()
    autoload: bool = True
    fallback: Fallback = "warn"
    debug: frozenset[Check] = frozenset()
    traceback: Traceback = "short"
    build_notice: bool = True
    wait_limit: float | None = None


def read(environ: Mapping[str, str] | None = None, *, backends: Iterable[str] = ()) -> Settings:
    """Parse ``environ``, by default that of the process.

    ``backends`` are the names of the installed ones, which parse the variables that start with
    their names, like ``TENSORPLUG_ACME_``. Any other unknown variable with our prefix gives a
    ``SettingsWarning``.

    Raises:
        SettingsError: a value is not allowed.

    """
    variables = {
        name: value.strip()
        for name, value in (os.environ if environ is None else environ).items()
        if name.startswith(PREFIX)
    }
    _warn_unknown(variables, tuple(_prefix(name) for name in backends))
    preferred = _names(variables.get("TENSORPLUG_BACKEND", ""))
    plugins = variables.get("TENSORPLUG_PLUGINS")
    return Settings(
        backends=() if preferred == ("auto",) else preferred,
        allowed=None if plugins is None else _names(plugins),
        denied=_names(variables.get("TENSORPLUG_DISABLE_PLUGINS", "")),
        autoload=_flag(variables, "TENSORPLUG_AUTOLOAD", default=True),
        fallback=_fallback(variables.get("TENSORPLUG_FALLBACK", "warn")),
        debug=_checks(variables.get("TENSORPLUG_DEBUG", "")),
        traceback=traceback(variables),
        build_notice=_flag(variables, BUILD_NOTICE, default=True),
        wait_limit=_seconds(variables, "TENSORPLUG_WAIT_LIMIT"),
    )


def traceback(environ: Mapping[str, str] | None = None) -> Traceback:
    """Parse ``TENSORPLUG_TRACEBACK`` alone, by default in the environment of the process.

    Raises:
        SettingsError: the value is not allowed.

    """
    variables = os.environ if environ is None else environ
    value = variables.get("TENSORPLUG_TRACEBACK", "short").strip()
    if value not in get_args(Traceback):
        raise SettingsError(f"TENSORPLUG_TRACEBACK={value!r}: must be short or full")
    return cast("Traceback", value)


def shows_builds() -> bool:
    """Return the present value of ``Settings.build_notice``, which backends ask for.

    Raises:
        SettingsError: the variable has a value that is not allowed.

    """
    return _flag(os.environ, BUILD_NOTICE, default=True)


_NAMES = (
    *("BACKEND", "PLUGINS", "DISABLE_PLUGINS", "AUTOLOAD", "FALLBACK", "DEBUG"),
    *("DEFAULT_FLOAT", "DEFAULT_INT", "TRACEBACK", "BUILD_NOTICE", "WAIT_LIMIT"),
)
_KNOWN = tuple(PREFIX + name for name in _NAMES)


def _names(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _flag(variables: Mapping[str, str], name: str, *, default: bool) -> bool:
    if name not in variables:
        return default
    value = variables[name].strip().lower()
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise SettingsError(f"{name}={variables[name]!r}: must be 0 or 1")


def _seconds(variables: Mapping[str, str], name: str) -> float | None:
    value = variables.get(name, "")
    if not value:
        return None
    with suppress(ValueError):
        if 0 < float(value) <= TIMEOUT_MAX:
            return float(value)
    raise SettingsError(f"{name}={value!r}: must be seconds, more than 0")


def _checks(value: str) -> frozenset[Check]:
    """Parse the value of ``TENSORPLUG_DEBUG``: a flag, or names of checks."""
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
    """Return the prefix of a backend's own variables: ``TENSORPLUG_MY_GPU_``."""
    return PREFIX + re.sub(r"\W", "_", backend).upper() + "_"


def _warn_unknown(variables: Mapping[str, str], owned: tuple[str, ...]) -> None:
    for name in variables:
        if name in _KNOWN or name.startswith(owned):
            continue
        from difflib import get_close_matches  # imported only for warnings

        # Without the prefix, which all of them share.
        near = get_close_matches(name.removeprefix(PREFIX), _NAMES, n=1)
        hint = f"did you mean {PREFIX}{near[0]}?" if near else f"known are {', '.join(_KNOWN)}"
        notices.warn(
            f"{name} is not a variable of tensorplug or of an installed backend; {hint}",
            SettingsWarning,
        )
