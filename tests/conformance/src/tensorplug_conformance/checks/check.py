"""Checks, their targets, and their errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.session import Session


_PART: Final = 0.9  # of a check's time


class CheckFailedError(Exception):
    """A check failed; the message says how."""


class NotMeasuredError(Exception):
    """A check does not apply here; the message says why. It is shown, and does not pass."""


@dataclass(frozen=True, slots=True)
class Target:
    """The backend under test: its name, and what builds engines (None: the plugins).

    ``seed``: of the ordinary inputs; ``draw``: of the cases that a plain process asks again;
    ``limit``: seconds for a row or check. ``falls_back``: what the backend lacks may run on
    another one, so that it can be asked about what it has.
    """

    backend: str
    factory: str | None = None
    seed: int = 0
    draw: int = 0
    limit: float = 300.0
    falls_back: bool = False

    @property
    def patience(self) -> float:
        """Seconds for a process that a check starts: it ends before the check itself has to."""
        return _PART * self.limit


@dataclass(frozen=True, slots=True)
class Check:
    """One check: ``run`` returns if it passes, perhaps with a note, else raises.

    ``run`` takes the target and a function that gives the session, opened at first use. Checks of
    one ``series`` run in one process, the first of them before everything else there, the others
    at its end.
    """

    level: int
    id: str
    run: Callable[[Target, Callable[[], Session]], str | None]
    series: str = ""
