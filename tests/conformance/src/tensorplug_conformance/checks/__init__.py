"""Checks that do not belong to a kernel. Each module has a table of them."""

from __future__ import annotations

from typing import Final

from tensorplug_conformance.checks import (
    asking,
    capabilities,
    elsewhere,
    loading,
    memory,
    ownership,
    programs,
    rare_leaks,
    soaking,
    storage,
)
from tensorplug_conformance.checks.check import Check, CheckFailedError, NotMeasuredError, Target

__all__ = ["Check", "CheckFailedError", "NotMeasuredError", "Target", "checks"]

_FAMILIES: Final = (
    soaking.FIRST,
    loading.CHECKS,
    memory.CHECKS,
    ownership.CHECKS,
    rare_leaks.CHECKS,
    storage.CHECKS,
    capabilities.CHECKS,
    asking.CHECKS,
    elsewhere.CHECKS,
    programs.CHECKS,
    soaking.LAST,
)


def checks(level: int) -> tuple[Check, ...]:
    """Return the checks of ``level`` itself, in a fixed order."""
    return tuple(check for family in _FAMILIES for check in family if check.level == level)
