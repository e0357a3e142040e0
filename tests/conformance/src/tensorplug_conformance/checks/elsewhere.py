"""Levels 2 and 3: each kernel once more where programs call it, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

from tensorplug_conformance.checks.check import Check, CheckFailedError, NotMeasuredError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session

__all__ = ["CHECKS"]

SECONDS: Final = 280.0
_FOUND, _NO_KERNEL = 4, 3  # exit statuses
_PROGRAM: Final = "tensorplug_conformance.checks.circumstances"


def _run(level: int, target: Target, _opened: Callable[[], Session]) -> None:
    command = [sys.executable, "-m", _PROGRAM, str(level), target.backend]
    command += [target.factory] if target.factory else []
    try:
        done = subprocess.run(  # our own module and arguments
            command, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise CheckFailedError(f"it hung: it did not end within {SECONDS:g} s") from None
    lines = done.stderr.strip().splitlines()
    last = "\n".join(lines[-1:] if done.returncode == _FOUND else lines[-12:])
    if done.returncode == _NO_KERNEL:
        raise NotMeasuredError(last)
    if done.returncode:
        raise CheckFailedError(last or f"the process ended with status {done.returncode}")


CHECKS: Final = tuple(
    Check(level, "kernels called elsewhere", partial(_run, level)) for level in (2, 3)
)
