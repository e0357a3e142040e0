"""Checks in processes of their own: how they are started, and how they tell what they found."""

from __future__ import annotations

import faulthandler
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from typing import IO, TYPE_CHECKING, Final

from tensorplug.plugin import child_processes
from tensorplug_conformance.checks.check import CheckFailedError, NotMeasuredError, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_NOT_MEASURED, _FAILED = 3, 4  # exit statuses; the last line of stderr says why
_LINES: Final = 12  # of a traceback that are shown
_POLL: Final = 0.02  # seconds
PRINTED: Final = 64 << 20
"""Bytes that a process may print."""


def run_module(module: str, target: Target, *before: str) -> str:
    """Run a module of this package in a new process; return what it printed.

    Its arguments are those of ``before``, and the target as ``unpack`` reads it.

    Raises:
        CheckFailedError: it failed, died or hung.
        NotMeasuredError: it does not apply here.

    """
    arguments = child_processes.module_arguments(module, *before, json.dumps(asdict(target)))
    command = [sys.executable, *arguments]
    code, printed, errors = _ended(command, target.patience)
    lines = errors.strip().splitlines() or ["it does not say why"]
    last = "\n".join(lines[-_LINES:])
    if code == _NOT_MEASURED:
        raise NotMeasuredError(lines[-1])
    if code == _FAILED:  # the lines before may be a child's
        raise CheckFailedError("\n".join([lines[-1], *lines[-_LINES:-1]]))
    if code < 0:
        raise CheckFailedError(f"the process died of signal {-code}:\n{last}")
    if code:
        raise CheckFailedError(f"the process ended with exit status {code}:\n{last}")
    return printed


def _ended(command: Sequence[str], seconds: float) -> tuple[int, str, str]:
    """Run a command; return its exit status and what it printed to both streams.

    Raises:
        CheckFailedError: it hung, or printed without end.

    """
    end = time.monotonic() + seconds
    with (
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, stdout=output, stderr=errors) as process,  # our own module
    ):
        try:
            while process.poll() is None:
                if time.monotonic() > end:
                    raise CheckFailedError(f"it hung: it did not end within {seconds:g} s")
                for stream in (output, errors):
                    if os.fstat(stream.fileno()).st_size > PRINTED:
                        raise CheckFailedError(f"it printed more than {PRINTED >> 20} MiB")
                time.sleep(_POLL)
        finally:
            process.kill()
        code = process.wait()
        return code, _text(output), _text(errors)


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read(PRINTED).decode(errors="replace")


def unpack(argument: str) -> Target:
    """Return the target of the last argument that ``run_module`` gives."""
    return Target(**json.loads(argument))


def tell(check: Callable[[], None]) -> int:
    """Run a check in the process that ``run_module`` started; return its exit status."""
    faulthandler.enable()
    try:
        check()
    except (NotMeasuredError, CheckFailedError) as found:
        sys.stderr.write("\n" + "; ".join(str(found).splitlines()) + "\n")
        return _NOT_MEASURED if isinstance(found, NotMeasuredError) else _FAILED
    return 0
