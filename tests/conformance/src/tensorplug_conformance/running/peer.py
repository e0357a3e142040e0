"""A process of this package that answers requests: objects go through its standard streams.

Unlike one of ``multiprocessing``, it does not import the program that starts it.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

from tensorplug.plugin import child_processes

if TYPE_CHECKING:
    from collections.abc import Sequence


class PeerLostError(Exception):
    """The process died or hung; the message says how."""


class Peer:
    """Runs ``main(*arguments)`` of a module and exchanges objects with it."""

    def __init__(self, module: str, arguments: Sequence[str]) -> None:
        # As ``__main__`` the module would be another one, and its classes too.
        program = f"from {module} import main; main(*sys.argv[1:])"
        self._process = subprocess.Popen(
            [sys.executable, *child_processes.code_arguments(program, *arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._answers: queue.SimpleQueue[tuple[Any] | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None  # it is a pipe
        try:
            with suppress(EOFError, OSError, ValueError, pickle.UnpicklingError):
                while True:
                    self._answers.put((pickle.load(self._process.stdout),))
        finally:
            self._answers.put(None)

    def send(self, what: object) -> None:
        """Send a request; if the process is gone, ``receive`` says so."""
        assert self._process.stdin is not None  # it is a pipe
        with suppress(BrokenPipeError):
            pickle.dump(what, self._process.stdin)
            self._process.stdin.flush()

    def receive(self, seconds: float) -> Any:
        """Return the next answer.

        Raises:
            PeerLostError: the process ended, or has not answered after that time.

        """
        try:
            answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            raise PeerLostError(f"it hung: it did not end within {seconds:.0f} s") from None
        if answer is None:
            code = self._process.wait()
            how = f"died of signal {-code}" if code < 0 else f"ended with exit status {code}"
            raise PeerLostError(f"the process {how}")
        return answer[0]

    def has_answered(self) -> bool:
        """Return whether ``receive`` would not wait."""
        return not self._answers.empty()

    def stop(self) -> None:
        """Kill the process if it still runs."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None  # both are pipes
            with suppress(BrokenPipeError):
                stream.close()


class Requests:
    """The other end: in the process, out of the reach of what it runs."""

    def __init__(self) -> None:
        self._input: BinaryIO = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
        self._output: BinaryIO = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (sys.stdin, sys.stdout):
            os.dup2(nothing, stream.fileno())
        os.close(nothing)

    def receive(self) -> Any:
        """Return the next request.

        Raises:
            EOFError: there is none any more.

        """
        return pickle.load(self._input)

    def answer(self, what: object) -> None:
        """Send an answer."""
        pickle.dump(what, self._output)
        self._output.flush()
