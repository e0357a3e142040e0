"""Runs a command as a process: its standard output, its exit code, and how it is interrupted."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Final, TextIO

from tensorplug.command_line import completion
from tensorplug.command_line.commands import NO, perform
from tensorplug.command_line.output import OutputError, Printer, writing
from tensorplug.command_line.parser import parse
from tensorplug.system.foreign_text import message_of, printable

INTERRUPTED: Final = 130  # as shells say it: 128 and the number of SIGINT
CLOSED: Final = 141  # 128 and the number of SIGPIPE, by which other programs end there


def run() -> int:
    """Run the command of this process's arguments, and return its exit code.

    Nothing but the answer goes to standard output: what plugins and drivers print goes to
    standard error.
    """
    completion.offer()
    warnings.showwarning = _warn
    answers: TextIO | None = None
    try:
        try:
            options = parse(sys.argv[1:], called_as(sys.argv[0]))
        except SystemExit:
            if sys.stdout is not None:
                with writing(sys.stdout):  # help
                    pass
            raise
        answers = _answers()
        return perform(options, Printer(answers, options.json))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except OutputError as error:
        _abandon(answers or sys.stdout)
        if error.closed:
            return CLOSED
        print(f"error: the answer cannot be written: {error}", file=sys.stderr)
        return NO


def called_as(program: str) -> str:
    """Return the command that a user types for ``program``, the first argument of the process."""
    name = Path(program).name.removesuffix(".exe")
    if name == "__main__.py":
        return f"{Path(sys.executable).name.removesuffix('.exe')} -m tensorplug"
    return name


def _answers() -> TextIO:
    """Return a stream to standard output; turn all other output to standard error for good.

    A library in C may write what it has kept when the process ends.
    """
    if sys.stdout is None:  # closed by the caller
        return Path(os.devnull).open("w", encoding="utf-8")  # until the process ends
    sys.stdout.flush()
    stream = os.fdopen(
        os.dup(sys.stdout.fileno()), "w", encoding=sys.stdout.encoding, errors="backslashreplace"
    )
    with suppress(OSError):  # there is no standard error
        os.dup2(2, sys.stdout.fileno())
    sys.stdout = sys.stderr
    return stream


def _abandon(stream: TextIO) -> None:
    """Let a stream drop what it still has: Python would write it at its end, and complain."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)


def _warn(message: Warning | str, *_place: object, **_more: object) -> None:
    """Print a warning without its place in the source, which says nothing to a command's user."""
    text = printable(message) if isinstance(message, str) else message_of(message)
    print(f"warning: {text}", file=sys.stderr)
