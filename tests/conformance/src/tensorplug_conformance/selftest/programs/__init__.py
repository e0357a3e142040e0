"""Clean backends made wrong in what only whole programs show, for the checks of level 4.

What is wrong shows neither in one call of a kernel nor in a second one. Each function of the
modules returns an engine, so that it can be named to another process.
"""

from __future__ import annotations

from tensorplug_conformance.selftest.programs.table import (
    WRONG_PROGRAMS,
    WrongProgram,
    try_program,
)

__all__ = ["WRONG_PROGRAMS", "WrongProgram", "try_program"]
