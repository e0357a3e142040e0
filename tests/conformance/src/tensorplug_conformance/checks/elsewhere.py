"""Levels 2 and 3: each kernel once more where programs call it, in a process of its own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from tensorplug_conformance.checks.check import Check
from tensorplug_conformance.checks.processes import run_module

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session


_PROGRAM: Final = "tensorplug_conformance.checks.circumstances"
_FIRST: Final = 0.25  # of the time: all calls are made again in two more engines


def _run(level: int, target: Target, _opened: Callable[[], Session]) -> str | None:
    printed = run_module(_PROGRAM, target, str(level), str(_FIRST * target.patience))
    return printed.strip() or None


CHECKS: Final = tuple(
    Check(level, "kernels called elsewhere", partial(_run, level)) for level in (2, 3)
)
