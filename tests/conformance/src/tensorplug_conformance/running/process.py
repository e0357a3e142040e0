"""One worker process, seen from outside: its input, its events, and how it ends.

A backend may damage what it reaches. It runs in a process group of its own, its parent is a
process that only waits for it (``keeper``), and files are read through handles that were opened
before.
It can still guess the number of the supervisor's process and kill that: such a run goes on with
``--resume``.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from tensorplug.plugin import child_processes
from tensorplug_conformance.checks.processes import PRINTED
from tensorplug_conformance.running import keeper
from tensorplug_conformance.trying.notes import note_beside, noted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorplug_conformance.checks import Target
    from tensorplug_conformance.verdicts import Item


# The garbage collector's thresholds. Cases are many objects, which live long: with Python's own
# thresholds it takes a sixth of the time.
COLLECTED: Final = (20_000, 50, 100)
_LINES: Final = 8
_CRASH: Final = "Fatal Python error"  # faulthandler begins so; the last call follows
_GONE: Final = 5000  # milliseconds in which a killed process ends
_LEAVE: Final = 10.0  # seconds that a backend may take to close at the end
_MEBIBYTE: Final = 1 << 20
_UNREAD: Final = 32 * _MEBIBYTE  # bytes of events; a verdict has some kilobytes
_TAIL: Final = _MEBIBYTE  # bytes of what it printed, in which the crash is
_QUOTED: Final = 60  # bytes of a line
_DIRTY: Final = {"MALLOC_PERTURB_": "1"}  # glibc fills new memory, so what nobody wrote shows
_KINDS: Final = ("begin", "backend", "done", "broken")


class StrangeError(Exception):
    """A process does what no worker does, and is trusted no more; the message says what."""


class WorkerProcess:
    """Runs ``tensorplug_conformance.running.worker`` on a target.

    Items go in through the process's standard input, one line each. Events come out through a
    file, so that none is lost when the backend crashes the process.

    Raises:
        OSError: it cannot be started.

    """

    def __init__(self, target: Target, seed: int, *, introduce: bool = False) -> None:
        self._folder = tempfile.TemporaryDirectory(
            prefix="tensorplug-conformance-", ignore_cleanup_errors=True
        )
        path = Path(self._folder.name, "events")
        self._events, self._output = path.open("w+b"), path.with_name("output").open("w+b")
        self._path, self._note = path, note_beside(path)
        self._at = 0
        module = "tensorplug_conformance.running.worker"
        command = [sys.executable, *child_processes.module_arguments(module, str(path))]
        kept = os.name == "posix"
        if kept:
            command = [sys.executable, "-I", "-S", keeper.__file__, *command]
        self._process = subprocess.Popen(  # our own module
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if kept else self._output,
            stderr=self._output,
            text=True,
            encoding="utf-8",
            env={**_DIRTY, **os.environ},
            # The terminal's Ctrl-C is for the supervisor, which ends the workers.
            process_group=0 if kept else None,
        )
        self._told = self._process.stdout
        stdin = self._process.stdin
        assert stdin is not None  # it is a pipe
        self._stdin: TextIO = stdin  # type: ignore[assignment]  # text was asked for
        request = {"target": asdict(target), "seed": seed}
        self._tell({**request, "introduce": introduce})

    def feed(self, items: Iterable[tuple[int, Item]]) -> None:
        """Hand over numbered items; they are worked through in this order."""
        for number, item in items:
            self._tell([number, item])

    def _tell(self, what: object) -> None:
        with suppress(BrokenPipeError):  # ``ended`` finds out that it is over
            self._stdin.write(json.dumps(what) + "\n")
            self._stdin.flush()

    def heard(self) -> list[dict[str, Any]]:
        """Return the events since the last call; whole lines only.

        Raises:
            StrangeError: they are none, or the file is not what was written to it.

        """
        status = os.fstat(self._events.fileno())
        unread = status.st_size - self._at
        if not status.st_nlink and os.name == "posix":
            raise StrangeError("it damaged the file of its events: the file was removed")
        if not 0 <= unread <= _UNREAD:
            raise StrangeError(
                f"it damaged the file of its events: {status.st_size} bytes, of which {self._at} "
                "were read"
            )
        self._events.seek(self._at)
        text = self._events.read(unread)
        whole = text[: text.rfind(b"\n") + 1]
        self._at += len(whole)
        return [_event(line) for line in whole.split(b"\n")[:-1]]

    def check(self) -> None:
        """Look at what a process can do besides.

        Raises:
            StrangeError: it prints without end, or has stopped its parent.

        """
        if os.fstat(self._output.fileno()).st_size > PRINTED:
            raise StrangeError(
                f"it wrote more than {PRINTED // _MEBIBYTE} MiB to its standard output"
            )
        if self._process.returncode is None and hasattr(os, "waitid"):  # not on macOS
            # Without WEXITED, a child that has just ended would count as no child at all.
            asked = os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT
            state = os.waitid(os.P_PID, self._process.pid, asked)
            if state is not None and state.si_code == os.CLD_STOPPED:
                raise StrangeError("it stopped its parent process")

    def ended(self) -> bool:
        """Return whether the process is over."""
        return self._process.poll() is not None

    def told(self, number: int) -> Path:
        """Return the file in which it tells the results of an item."""
        return told_beside(self._path, number)

    def dismiss(self) -> None:
        """Close its input: the process ends by itself."""
        with suppress(BrokenPipeError):
            self._stdin.close()

    def leave(self) -> None:
        """Wait a while for the end of a process whose input is closed."""
        with suppress(subprocess.TimeoutExpired):  # then it is stopped
            self._process.wait(_LEAVE)

    def stop(self) -> None:
        """Kill the process, and those that it has started, if they still run; clean up."""
        if os.name == "posix":
            with suppress(ProcessLookupError, PermissionError):  # macOS: they are ending
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        self._await_end()
        self.dismiss()
        for file in (self._told, self._events, self._note, self._output):
            if file is not None:
                file.close()
        self._folder.cleanup()

    def _await_end(self) -> None:
        """Wait until a worker whose parent is dead no longer has the other end of its input.

        The next one opens the device, which may be for one process at a time.
        """
        if self._told is not None and not self._stdin.closed:
            ends = select.poll()
            ends.register(self._stdin.fileno(), 0)  # that nobody reads is told in any case
            ends.poll(_GONE)

    def during(self) -> str:
        """Return which case of a row it runs, or ran last, as the end of a message."""
        case = noted(self._note)
        return f" in case {case!r}" if case else ""

    def epitaph(self) -> str:
        """Return how the process ended, and where it crashed or what it wrote last."""
        how = self._how() + self.during()
        self._output.seek(max(0, os.fstat(self._output.fileno()).st_size - _TAIL))
        lines = self._output.read(_TAIL).decode(errors="replace").strip().splitlines()
        crashes = [at for at, line in enumerate(lines) if line.startswith(_CRASH)]
        begin = crashes[-1] if crashes else max(len(lines) - _LINES, 0)
        return "\n".join([f"the process {how}", *lines[begin : begin + _LINES]])

    def _how(self) -> str:
        """Return how the process ended, as its parent tells."""
        end = self._told.read().strip() if self._told is not None else ""
        if end:
            return end
        code = self._process.returncode
        if code >= 0:
            return f"ended with exit status {code}"
        died = f"died of signal {-code}"
        return died if self._told is None else f"ended its parent process, which {died}"


def told_beside(events: Path, number: int) -> Path:
    """Return the file, beside that of events, for the results of an item."""
    return events.with_name(f"told{number}")


def _event(line: bytes) -> dict[str, Any]:
    """Return what a line says.

    Raises:
        StrangeError: no worker says so.

    """
    try:
        event = json.loads(line.decode())
        if b"\\ud" in line.lower():  # half of a surrogate pair, which no report can have
            event = json.loads(json.dumps(event, ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict) or event.get("event") not in _KINDS:
        raise StrangeError(f"it damaged the file of its events: {line[:_QUOTED]!r} is none")
    return event
