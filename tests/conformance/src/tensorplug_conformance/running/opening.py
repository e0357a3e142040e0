"""Whether the backend under test opens: tried once, before anything runs on it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from tensorplug.engine.devices import split_name
from tensorplug.plugin import TensorplugError
from tensorplug.plugins.metadata import BACKENDS
from tensorplug.plugins.selection import Selection
from tensorplug_conformance.running.process import StrangeError, WorkerProcess

if TYPE_CHECKING:
    from tensorplug_conformance.checks import Target
    from tensorplug_conformance.running.supervisor import Limits


_POLL: Final = 0.02  # seconds


class NotOpenedError(Exception):
    """The backend under test does not open; the message says why, on one line."""


def check_opens(target: Target, limits: Limits) -> dict[str, Any]:
    """Check that the backend is installed, and open it in a process of its own.

    Returns what it says of itself.

    Raises:
        NotOpenedError: it is not installed, refuses to open, takes the process down, or hangs.

    """
    if target.factory is None:
        try:
            backend_name, _ = split_name(target.backend)
            Selection.read().pick(BACKENDS, backend_name)
        except TensorplugError as error:
            raise NotOpenedError(_one_line(str(error))) from error
    introduction, reason = _tried(target, limits.opening)
    if reason:
        raise NotOpenedError(f"backend {target.backend!r} does not open: {_one_line(reason)}")
    return introduction


def _tried(target: Target, seconds: float) -> tuple[dict[str, Any], str]:
    """Return what the backend says of itself, and why it does not open within a time, or ""."""
    try:
        process = WorkerProcess(target, 0, introduce=True)
    except OSError as error:
        return {}, f"no process starts: {error}"
    began = time.monotonic()
    try:
        while time.monotonic() - began < seconds:
            over = process.ended()  # asked before reading, so that nothing said is lost
            for event in process.heard():
                if event["event"] == "backend":
                    process.dismiss()
                    process.leave()
                    return event.get("backend", {}), str(event.get("error", ""))
            process.check()
            if over:
                return {}, process.epitaph()
            time.sleep(_POLL)
    except StrangeError as error:
        return {}, str(error)
    finally:
        process.stop()
    return {}, f"it hung: it did not end within {seconds:.0f} s"


def _one_line(text: str) -> str:
    return " ".join(text.split())
