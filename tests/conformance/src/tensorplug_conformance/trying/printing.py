"""What a backend prints, by Python or by native code: all that reaches the two descriptors."""

from __future__ import annotations

import faulthandler
import os
import sys
import tempfile
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator


_STREAMS: Final = (1, 2)
_QUOTED: Final = 200  # characters of what was printed


@dataclass(slots=True)
class Output:
    """What was printed until the end of the block; its beginning, if it is long."""

    text: str = ""


@contextmanager
def printed() -> Iterator[Output]:
    """Collect what is written to the standard output and error, by whatever code, in a block.

    If the process crashes, the traceback still goes where it would have gone.
    """
    output = Output()
    crashes = faulthandler.is_enabled()
    _flush()
    kept = [os.dup(stream) for stream in _STREAMS]
    try:
        with tempfile.TemporaryFile() as file:
            if crashes:
                faulthandler.enable(kept[1])
            for stream in _STREAMS:
                os.dup2(file.fileno(), stream)
            try:
                # Python's own streams may lead elsewhere than to the descriptors.
                text = os.fdopen(os.dup(file.fileno()), "w", encoding="utf-8")
                with text, redirect_stdout(text), redirect_stderr(text):
                    yield output
            finally:
                _flush()
                for stream, old in zip(_STREAMS, kept, strict=True):
                    os.dup2(old, stream)
                if crashes:
                    faulthandler.enable(_STREAMS[1])
            file.seek(0)
            output.text = file.read(_QUOTED).decode("utf-8", errors="replace")
    finally:
        for old in kept:
            os.close(old)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(ValueError, OSError, AttributeError):  # closed, or there is none
            stream.flush()
