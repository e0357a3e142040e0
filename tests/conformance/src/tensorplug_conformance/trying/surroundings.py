"""What a backend shares with everything else in its process, and must leave as it found it.

Whoever uses a backend has settings of their own: what NumPy does on overflow, where a random
generator stands, the folder, the rounding of floats. The suite reads these before and after; a
backend that changes one is named, with what it changed. So is one that logs an error.
"""

from __future__ import annotations

import builtins
import decimal
import gc
import locale
import logging
import math
import os
import random
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if sys.platform != "win32":
    import resource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


_ONE, _HALF_ULP, _SMALLEST, _TWO = 1.0, 2.0**-53, 2.0**-1022, 2.0
_QUOTED: Final = 80  # characters of a value
_LOGGED: Final = 1000  # of what is logged as an error
_WATCHED: Final = (builtins, math, os, time, random, np, np.linalg, gc, warnings)
_CORE: Final = "tensorplug"
_OWN: Final = ("tensorplug_conformance", "tensorplug.")


def _rounding() -> tuple[float, ...]:
    """Return what tells how this thread rounds floats, and whether it keeps subnormal ones."""
    return (_ONE + _HALF_ULP, -_ONE - _HALF_ULP, _SMALLEST / _TWO, (_SMALLEST / _TWO) * _TWO)


def _handlers() -> dict[str, Any]:
    return {number.name: signal.getsignal(number) for number in signal.Signals}


def _sweeping() -> list[str]:
    """Return the filters that concern warnings of any kind; imports add others by right."""
    return [
        action
        for action, message, category, module, _ in warnings.filters
        if message is None and module is None and category is Warning
    ]


def _mask() -> str:
    status = Path("/proc/self/status")
    lines = status.read_text("ascii").splitlines() if status.exists() else []
    return next((line for line in lines if line.startswith("Umask")), "")


def _drawn() -> Any:
    name, keys, *rest = np.random.get_state(legacy=True)  # noqa: NPY002  # users' programs have it
    return name, np.asarray(keys).tobytes(), rest


_SETTINGS: Final[dict[str, Callable[[], Any]]] = {
    "the rounding of floats": _rounding,
    "np.geterr()": np.geterr,
    "np.geterrcall()": np.geterrcall,
    "np.get_printoptions()": np.get_printoptions,
    "the state of np.random": _drawn,
    "the state of random": random.getstate,
    "the current folder": os.getcwd,
    "os.environ": lambda: dict(os.environ),
    "the mask of new files": _mask,
    "the signal handlers": _handlers,
    "the decimal context": lambda: repr(decimal.getcontext()),
    "sys.stdin, sys.stdout and sys.stderr": lambda: (sys.stdin, sys.stdout, sys.stderr),
    "the locale": lambda: locale.setlocale(locale.LC_ALL),
    "sys.getrecursionlimit()": sys.getrecursionlimit,
    "sys.getswitchinterval()": sys.getswitchinterval,
    "sys.getprofile()": sys.getprofile,
    "sys.path": lambda: list(sys.path),
    "sys.excepthook": lambda: sys.excepthook,
    "sys.unraisablehook": lambda: sys.unraisablehook,
    "threading.excepthook": lambda: threading.excepthook,
    "gc.isenabled()": gc.isenabled,
    "gc.get_threshold()": gc.get_threshold,
    "the filters of warnings": _sweeping,
    "the handlers of the root logger": lambda: list(logging.root.handlers),
    "the level of the root logger": lambda: logging.root.level,
}


if sys.platform != "win32":
    _TIMERS: Final = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
    _LIMITS: Final = ("AS", "CORE", "CPU", "DATA", "FSIZE", "NOFILE", "STACK")
    _SETTINGS.update(
        {
            "the priority of the process": lambda: os.getpriority(os.PRIO_PROCESS, 0),
            "the blocked signals": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ()),
            "the timers": lambda: [signal.getitimer(which) != (0, 0) for which in _TIMERS],
            "the limits of resources": lambda: {
                name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}")) for name in _LIMITS
            },
        }
    )
if sys.platform == "linux":
    _SETTINGS["the processors of the process"] = lambda: os.sched_getaffinity(0)


class _Errors:
    """Makes the records of all loggers, and keeps the texts of errors. A filter hides none."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._make: Callable[..., logging.LogRecord] | None = None

    def listen(self) -> None:
        """Hear of all that is logged from now on."""
        if self._make is None:
            self._make = logging.getLogRecordFactory()
            logging.setLogRecordFactory(self)

    def __call__(self, *arguments: Any, **named: Any) -> logging.LogRecord:
        """Return a record."""
        assert self._make is not None
        record = self._make(*arguments, **named)
        if record.levelno >= logging.ERROR:
            self.texts.append(f"{record.name}: {record.getMessage()}"[:_LOGGED])
        return record


_errors: Final = _Errors()


class Surroundings:
    """The settings as they are now, and what is logged as an error from now on."""

    def __init__(self) -> None:
        _errors.listen()
        self._logged = len(_errors.texts)
        self._before = {name: read() for name, read in _SETTINGS.items()}

    def changed(self) -> dict[str, tuple[Any, Any]]:
        """Return the settings that are others now, and what they were and are.

        New variables of the environment do not count: native libraries are set up by these, some
        of them when they are first needed.
        """
        now = {name: read() for name, read in _SETTINGS.items()}
        changes = {
            name: (before, now[name])
            for name, before in self._before.items()
            if now[name] != before
        }
        was, is_ = changes.get("os.environ", ({}, {}))
        if all(is_.get(name) == value for name, value in was.items()):
            changes.pop("os.environ", None)
        return changes

    def fault(self) -> str:
        """Return what was changed or logged, as text; empty if nothing was."""
        logged = _errors.texts[self._logged :]
        told = f"it logged {len(logged)} errors, the last by {logged[-1]}" if logged else ""
        return "; ".join(filter(None, [_listed(self.changed()), told]))


def _listed(changed: Mapping[str, tuple[Any, Any]]) -> str:
    return "; ".join(f"it changed {name}{_told(*pair)}" for name, pair in changed.items())


def _told(before: Any, now: Any) -> str:
    """Return how a setting differs; of long ones, only in which entries."""
    if isinstance(before, dict) and isinstance(now, dict):
        names = sorted(name for name in before | now if before.get(name) != now.get(name))
        pairs = (f"{name}: {before.get(name)!r} is {now.get(name)!r}" for name in names)
        return f" ({', '.join(pairs)})"
    texts = (repr(before), repr(now))
    return f" from {texts[0]} to {texts[1]}" if max(map(len, texts)) < _QUOTED else ""


class Functions:
    """The functions of the suite, of NumPy and of Python, by which a backend is judged."""

    def __init__(self) -> None:
        self._known = list(_functions())

    def replaced(self) -> list[str]:
        """Return the names of those that are others now."""
        return [
            f"{place}.{name}"
            for place, members, name, value in self._known
            if members.get(name) is not value
        ]


def _functions() -> Iterator[tuple[str, Mapping[str, Any], str, Any]]:
    """Yield where a function is, the members there, its name, and itself."""
    own = [
        module
        for name, module in sorted(sys.modules.items())
        if name == _CORE or name.startswith(_OWN)
    ]
    for module in (*_WATCHED, *own):
        for name, value in list(vars(module).items()):
            if callable(value):
                yield module.__name__, vars(module), name, value
            if isinstance(value, type) and value.__module__ == module.__name__:
                members = vars(value)
                for part, method in list(members.items()):
                    if isinstance(method, FunctionType | property | classmethod | staticmethod):
                        yield f"{module.__name__}.{name}", members, part, method
