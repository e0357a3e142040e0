"""Clean backends with faults that only whole programs show, for the checks of level 4.

The faults show neither in one call of a kernel nor in a second one. Each function of the
modules returns an engine, so that another process can be given its name.
"""

from __future__ import annotations

from tensorplug_conformance.selftest.programs.table import (
    WRONG_PROGRAMS,
    WrongProgram,
    try_program,
)

__all__ = ["WRONG_PROGRAMS", "WrongProgram", "try_program"]
