"""Levels 0, 1 and 4: checks that do not belong to a kernel. Each module has a table of them."""

from __future__ import annotations

from tensorplug_conformance.checks import capabilities, loading, memory, programs, storage
from tensorplug_conformance.checks.check import Check, CheckFailedError, NotMeasuredError, Target

__all__ = ["Check", "CheckFailedError", "NotMeasuredError", "Target", "checks"]


def checks(level: int) -> tuple[Check, ...]:
    """Return the checks of ``level`` itself, in a fixed order."""
    return tuple(
        check
        for family in (loading, memory, storage, capabilities, programs)
        for check in family.CHECKS
        if check.level == level
    )
