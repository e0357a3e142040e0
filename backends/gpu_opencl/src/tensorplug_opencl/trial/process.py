"""A child process as its parent sees it: requests and answers, lines of JSON."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import threading
import time
from multiprocessing.spawn import get_executable
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import child_processes

if TYPE_CHECKING:
    from collections.abc import Iterator


IDLE: Final = 10.0  # seconds without a request, after which a child ends
_ENDING: Final = 5.0  # seconds that it gets for that once it has closed its answers
_GLANCE: Final = 0.1  # seconds between two looks at the clock


class Child:
    """A process that tries a device, and then builds programs for it until it is idle.

    One request at a time is under way: others get no answer meanwhile, such as a signal handler's.
    """

    def __init__(self, code: str) -> None:
        command = [get_executable(), *child_processes.code_arguments(code)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(  # noqa: S603  # our own module
            command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, errors="replace"
        )
        self._parent = os.getpid()
        self._busy = threading.Lock()
        self._deadline = time.monotonic() + IDLE
        self._hung = 0.0
        self._patience = _GLANCE
        self.said = ""  # in its last line of errors
        self._listener = threading.Thread(target=self._listen, daemon=True)
        for thread in (self._listener, threading.Thread(target=self._watch, daemon=True)):
            thread.start()
        atexit.register(self.end)

    @property
    def ended(self) -> bool:
        """Whether it takes no more requests."""
        return os.getpid() != self._parent or self._process.poll() is not None

    def ask(self, request: dict[str, Any], seconds: float) -> Iterator[dict[str, Any]]:
        """Send a request; yield the answers, the last of which says ``done``, if it lives so long.

        A process that has not said so after ``seconds`` is killed.
        """
        if self.ended or not self._busy.acquire(blocking=False):
            return
        self._deadline = time.monotonic() + seconds
        try:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(f"{json.dumps(request)}\n")
            self._process.stdin.flush()
            for line in self._process.stdout:
                if not line.endswith("}\n"):
                    break  # it was killed while it wrote this
                answer = json.loads(line)
                yield answer
                if answer.get("done"):
                    return
            self._hung = seconds if time.monotonic() > self._deadline else 0.0
            self._patience = _ENDING  # how it ends is worth the time
        except OSError:  # it ended before it read all
            self._patience = _ENDING
        finally:
            self._deadline = time.monotonic() + IDLE
            self._busy.release()

    def end(self) -> child_processes.End:
        """End the process; return how it ended."""
        atexit.unregister(self.end)
        if os.getpid() != self._parent:
            return child_processes.End("", from_outside=True)  # a forked process's parent's
        process = self._process
        code = process.poll()
        if code is None:
            try:
                code = process.wait(self._patience)  # it may be about to end
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._listener.join(1.0)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:  # what it has not read
                    continue
        if self._hung:
            return child_processes.End(
                f"it did not end within {self._hung:.0f} s", from_outside=False
            )
        if code is None:
            return child_processes.End(
                "the process stopped to answer, and did not end", from_outside=False
            )
        return child_processes.describe_end(code)

    def dismiss(self) -> None:
        """Let it end once it has done what it was asked for."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as errors:
            for line in errors:
                self.said = line.strip() or self.said

    def _watch(self) -> None:
        while self._process.poll() is None:
            if time.monotonic() > self._deadline:
                self._busy.acquire(blocking=False)  # for good: nothing more is asked
                self._process.kill()
            time.sleep(_GLANCE)
