"""One worker process, seen from outside: its input, its events, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from tensorplug_conformance.notes import noted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorplug_conformance.checks import Target

__all__ = ["COLLECTED", "Item", "WorkerProcess"]

Item = tuple[Any, ...]  # ("check", level, id) or ("row", kernel, dtype, mode), ("evidence", ...)
# The garbage collector's thresholds. Cases are many objects, which live long: with Python's own
# thresholds it takes a sixth of the time.
COLLECTED: Final = (20_000, 50, 100)
_LINES: Final = 8
_CRASH: Final = "Fatal Python error"  # faulthandler begins so; the last call follows
_LEAVE: Final = 10.0  # seconds that a backend may take to close at the end


class WorkerProcess:
    """Runs ``tensorplug_conformance.worker`` on a target.

    Items go in through the process's standard input, one line each. Events come out through a
    file, so that none is lost when the backend crashes the process.
    """

    def __init__(self, target: Target, seed: int, *, introduce: bool = False) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tensorplug-conformance-")
        self._events = Path(self._folder.name, "events")
        self._events.write_text("")
        self._output = Path(self._folder.name, "output")
        self._at = 0
        command = [sys.executable, "-m", "tensorplug_conformance.worker", str(self._events)]
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(  # our own module
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                # The terminal's Ctrl-C is for the supervisor, which ends the workers.
                process_group=0 if os.name == "posix" else None,
            )
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
        """Return the events since the last call; whole lines only."""
        with self._events.open("rb") as events:
            events.seek(self._at)
            text = events.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._at += len(whole)
        return [json.loads(line) for line in whole.splitlines()]

    def ended(self) -> bool:
        """Return whether the process is over."""
        return self._process.poll() is not None

    def dismiss(self) -> None:
        """Close its input: the process ends by itself."""
        with suppress(BrokenPipeError):
            self._stdin.close()

    def leave(self) -> None:
        """Wait a while for the end of a process whose input is closed."""
        with suppress(subprocess.TimeoutExpired):  # then it is stopped
            self._process.wait(_LEAVE)

    def stop(self) -> None:
        """Kill the process if it still runs, and clean up."""
        self._process.kill()
        self._process.wait()
        self.dismiss()
        self._folder.cleanup()

    def during(self) -> str:
        """Return which case of a row it runs, or ran last, as the end of a message."""
        case = noted(self._events)
        return f" in case {case!r}" if case else ""

    def epitaph(self) -> str:
        """Return how the process ended, and where it crashed or what it wrote last."""
        code = self._process.returncode
        how = f"died of signal {-code}" if code < 0 else f"ended with exit status {code}"
        how += self.during()
        lines = self._output.read_text("utf-8", errors="replace").strip().splitlines()
        crashes = [at for at, line in enumerate(lines) if line.startswith(_CRASH)]
        begin = crashes[-1] if crashes else max(len(lines) - _LINES, 0)
        return "\n".join([f"the process {how}", *lines[begin : begin + _LINES]])
