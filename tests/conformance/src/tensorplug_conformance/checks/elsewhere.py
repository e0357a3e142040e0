"""Checks in processes of their own.

Level 1: late errors, by which the device may be lost. Levels 2 and 3: each kernel once more where
programs call it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from tensorplug.errors import (
    BackendMemoryError,
    DeviceFaultError,
    DeviceLostError,
    DeviceTimeoutError,
)
from tensorplug_conformance.checks.check import Check, NotMeasuredError
from tensorplug_conformance.checks.processes import run_module

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.errors import DeviceError
    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session


_PROGRAM: Final = "tensorplug_conformance.checks.circumstances"
_LATE: Final = "tensorplug_conformance.checks.late_errors"
_FIRST: Final = 0.25  # of the time: all calls are made again in two more engines


def _run(level: int, target: Target, _opened: Callable[[], Session]) -> str | None:
    printed = run_module(_PROGRAM, target, str(level), str(_FIRST * target.patience))
    return printed.strip() or None


LATE: Final[dict[str, type[DeviceError]]] = {
    "late errors: a kernel fails": DeviceFaultError,
    "late errors: there is no room": BackendMemoryError,
    "late errors: the device is lost": DeviceLostError,
    "late errors: no answer": DeviceTimeoutError,
}


def _run_late(name: str, target: Target, opened: Callable[[], Session]) -> None:
    if opened().device.capabilities.inject_fault is None:
        raise NotMeasuredError("the backend does not offer inject_fault")
    run_module(_LATE, target, name)


CHECKS: Final = (
    *(Check(1, name, partial(_run_late, name)) for name in LATE),
    *(Check(level, "kernels called elsewhere", partial(_run, level)) for level in (2, 3)),
)
