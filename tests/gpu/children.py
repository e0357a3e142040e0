"""A process with a time limit, and its output in a file."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


POLL: Final = 0.2  # seconds
LOOK: Final = 2.0  # seconds from one look at what it has done to the next
GRACE: Final = 3.0  # seconds from the request to end to the end


@dataclass(frozen=True)
class End:
    """How a process ended: its exit status, or None if its time was over."""

    status: int | None
    seconds: float

    @property
    def told(self) -> str:
        """The end in words; "" after success."""
        if self.status is None:
            return f"stopped after {self.seconds:.0f} s, its share of the time"
        if self.status < 0:
            names = {member.value: member.name for member in signal.Signals}
            return f"the process died of {names.get(-self.status, f'signal {-self.status}')}"
        return f"exit status {self.status}" if self.status else ""


def run(
    command: Sequence[str],
    *,
    log: Path,
    limit: float,
    environment: Mapping[str, str],
    folder: Path,
    look: Callable[[], None],
) -> End:
    """Run ``command`` in ``folder`` for at most ``limit`` seconds, and call ``look`` meanwhile."""
    began = looked = time.monotonic()
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=dict(environment),
            start_new_session=True,  # its children end with it
        ) as process,
    ):
        try:
            while process.poll() is None:
                now = time.monotonic()
                if now - began > limit:
                    _stop(process)
                    return End(None, time.monotonic() - began)
                if now - looked > LOOK:
                    looked = now
                    look()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(POLL)
        except BaseException:
            _stop(process)
            raise
    return End(process.returncode, time.monotonic() - began)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it has started."""
    _signal(process, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
    process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(OSError):  # it is over
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)  # also when the first one of the group is gone
        else:
            process.terminate()
