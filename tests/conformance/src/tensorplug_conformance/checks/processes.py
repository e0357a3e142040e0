"""Checks in processes of their own: how they are started, and how they tell what they found."""

from __future__ import annotations

import faulthandler
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from tensorplug_conformance.checks.check import CheckFailedError, NotMeasuredError, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["run_module", "tell", "unpack"]

_NOT_MEASURED, _FAILED = 3, 4  # exit statuses; the last line of stderr says why
_LINES: Final = 12  # of a traceback that are shown


def run_module(module: str, target: Target, *before: str) -> str:
    """Run a module of this package in a new process; return what it printed.

    Its arguments are those of ``before``, the name of the backend, and perhaps an engine factory.

    Raises:
        CheckFailedError: it failed, died or hung.
        NotMeasuredError: it does not apply here.

    """
    command = [sys.executable, "-m", module, *before, target.backend]
    command += [target.factory] if target.factory else []
    try:
        done = subprocess.run(  # our own module and arguments
            command, capture_output=True, text=True, timeout=target.patience, check=False
        )
    except subprocess.TimeoutExpired:
        raise CheckFailedError(f"it hung: it did not end within {target.patience:g} s") from None
    lines = done.stderr.strip().splitlines()
    last = "\n".join(lines[-_LINES:])
    if done.returncode == _NOT_MEASURED:
        raise NotMeasuredError(lines[-1])
    if done.returncode == _FAILED:  # the lines before may be a child's
        raise CheckFailedError("\n".join([lines[-1], *lines[-_LINES:-1]]))
    if done.returncode < 0:
        raise CheckFailedError(f"the process died of signal {-done.returncode}:\n{last}")
    if done.returncode:
        raise CheckFailedError(f"the process ended with exit status {done.returncode}:\n{last}")
    return done.stdout


def unpack(arguments: Sequence[str]) -> Target:
    """Return the target that ``run_module`` names in the last arguments."""
    backend, *factory = arguments
    return Target(backend, factory[0] if factory else None)


def tell(check: Callable[[], None]) -> int:
    """Run a check in the process that ``run_module`` started; return its exit status."""
    faulthandler.enable()
    try:
        check()
    except (NotMeasuredError, CheckFailedError) as found:
        sys.stderr.write("\n" + "; ".join(str(found).splitlines()) + "\n")
        return _NOT_MEASURED if isinstance(found, NotMeasuredError) else _FAILED
    return 0
