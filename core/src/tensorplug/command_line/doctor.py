"""Each backend tried in a process of its own, so that a crash is a finding and not the end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

from tensorplug.command_line.listings import installed
from tensorplug.engine.distributions import INSTALL
from tensorplug.plugins import selection

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["examine"]

Line = dict[str, Any]

_ADVICE: Final = {
    "incompatible": "install versions that fit: pip install --upgrade tensorplug {distribution}",
    "conflict": "two distributions claim this name: uninstall one of them",
    "disabled": "it is disabled by TENSORPLUG_DISABLE_PLUGINS",
    "failed": "it is installed, but broken: pip install --force-reinstall {distribution}",
}


def examine(name: str | None, seconds: float) -> list[Line]:
    """Return a line per device of each backend, or of ``name`` alone: what came of trying it.

    ``state`` is "ok" or "failed", or "refused" for a device that its backend does not open while
    it has others; ``advice`` says what to do. ``seconds``: how long a backend may take.
    """
    known = [item for item in installed() if item["kind"] == "backend"]
    lines = [
        line for item in known if name in (None, item["name"]) for line in _backend(item, seconds)
    ]
    return lines or [_missing(name, [item["name"] for item in known])]


def _missing(name: str | None, known: Sequence[str]) -> Line:
    if name is None:
        return _line("", "", "failed", "no backend is installed", INSTALL["cpu"])
    cure = f"{selection.advice(name, known)} Installed: {', '.join(known) or 'none'}"
    return _line(name, "", "failed", f"backend {name!r} is not installed", cure)


def _line(backend: str, device: str, state: str, finding: str, advice: str = "") -> Line:
    return {
        "backend": backend,
        "device": device,
        "state": state,
        "finding": finding,
        "advice": advice,
    }


def _backend(info: Line, seconds: float) -> list[Line]:
    if info["state"] not in ("available", "loaded"):
        advice = _ADVICE.get(info["state"], "").format(distribution=info["distribution"])
        finding = f"{info['state']}: {info['detail']}" if info["detail"] else info["state"]
        return [_line(info["name"], "", "failed", finding, advice)]
    command = [sys.executable, "-m", "tensorplug.command_line.probe", info["name"]]
    try:
        ended = subprocess.run(  # our own module
            command, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as hung:
        text = (hung.stdout or b"").decode(errors="replace")  # bytes, for all that was asked for
        finding = f"it did not end within {seconds:.0f} s"
        return _told(info, text, finding, "look for a hanging driver; nothing else waits for it")
    if ended.returncode in (0, 1) and '"done": "backend"' in ended.stdout:
        return _told(info, ended.stdout)
    finding = _end(ended.returncode, ended.stderr)
    return _told(
        info, ended.stdout, finding, "report it to the backend's authors, with its output"
    )


def _end(code: int, output: str) -> str:
    """Return how a process ended, with the last lines that it wrote."""
    how = f"it ended with exit status {code}"
    if code < 0:
        names = {item.value: item.name for item in signal.Signals}
        how = f"it died of {names.get(-code, f'signal {-code}')}"
    last = output.strip().splitlines()[-3:]
    return "\n".join([how, *last])


def _told(info: Line, output: str, end: str = "", advice: str = "") -> list[Line]:
    """Return lines for what a probe said, and for how it ended if that was no proper end."""
    lines, begun = [], ""
    for text in output.splitlines():
        event = json.loads(text)
        if event.get("step") == "device":
            begun = event["device"]
            hardware = ", ".join(filter(None, (event["hardware"], event["driver"])))
        elif event.get("done") == "device":
            lines.append(_computed(info["name"], hardware, event))
            begun = ""
        elif "failed" in event:
            about = event.get("device", "")
            lines.append(_line(info["name"], about, "failed", event["error"], _hint(info, event)))
            begun = ""
        elif event.get("done") == "backend":
            found = [_line(info["name"], "", "warning", item) for item in event["warnings"]]
            lines += found
    if end:
        lines.append(_line(info["name"], begun, "failed", end, advice))
    if lines and all(line["state"] == "refused" for line in lines):
        lines = [{**line, "state": "failed"} for line in lines]
    return lines


def _computed(backend: str, hardware: str, event: Line) -> Line:
    if "refused" in event:
        return _line(backend, event["device"], "refused", f"{hardware}: {event['refused']}")
    if event["right"]:
        finding = f"{hardware}; a step of gradient descent in {event['seconds']:.2f} s"
        return _line(backend, event["device"], "ok", finding)
    finding = f"{hardware}: wrong numbers, off by {event['error']:.2g}"
    advice = f"do not use it; tensorplug-conformance run --backend {backend} tells which kernels"
    return _line(backend, event["device"], "failed", finding, advice)


def _hint(info: Line, event: Line) -> str:
    """Return what to do about an error that names itself."""
    error = event["error"]
    if error.startswith("BackendUnavailableError"):
        return "its hardware or driver is not here; the message says what was looked for"
    if "MemoryError" in error:
        return "free memory on the device, or let other programs end"
    if event["failed"] == "device":
        return f"tensorplug-conformance run --backend {info['name']} tells what it cannot do"
    if error.startswith("PluginVersionError"):
        return _ADVICE["incompatible"].format(distribution=info["distribution"])
    return _ADVICE["failed"].format(distribution=info["distribution"])
