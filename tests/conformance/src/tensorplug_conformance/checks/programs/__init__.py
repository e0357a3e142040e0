"""Level 4: programs, in which kernels that are correct alone work together."""

from __future__ import annotations

from tensorplug_conformance.checks.programs import (
    compiling,
    directions,
    flatness,
    functions,
    lifetimes,
    looping,
    mapping,
    repeating,
    restoring,
    rounding,
    structure,
    threads,
    training,
    whole,
)

__all__ = ["CHECKS"]

CHECKS = (
    *training.CHECKS,
    *compiling.CHECKS,
    *functions.CHECKS,
    *rounding.CHECKS,
    *directions.CHECKS,
    *looping.CHECKS,
    *mapping.CHECKS,
    *structure.CHECKS,
    *repeating.CHECKS,
    *flatness.CHECKS,
    *lifetimes.CHECKS,
    *restoring.CHECKS,
    *threads.CHECKS,
    *whole.CHECKS,
)
