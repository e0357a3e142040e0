"""Tries each backend in a separate process, so that a crash of one is only a finding."""

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
    "conflict": "two distributions have this name: uninstall one of them",
    "disabled": "it is disabled by TENSORPLUG_DISABLE_PLUGINS",
    "failed": "it is installed, but broken: pip install --force-reinstall {distribution}",
}


def examine(name: str | None, seconds: float) -> list[Line]:
    """Try each backend, or only ``name``, and return a line per device.

    ``state`` is "ok" or "failed", or "refused" for a device that its backend refuses while it
    has others; ``advice`` says what to do. ``seconds``: the time limit for one backend.
    """
    known = [line for line in installed() if line["kind"] == "backend"]
    lines = [
        line for info in known if name in (None, info["name"]) for line in _backend(info, seconds)
    ]
    return lines or [_missing(name, [info["name"] for info in known])]


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
        text = (hung.stdout or b"").decode(errors="replace")  # bytes, in spite of text=True
        finding = f"it did not end within {seconds:.0f} s"
        return _read_output(info, text, finding, "look for a hanging driver")
    if ended.returncode in (0, 1) and '"done": "backend"' in ended.stdout:
        return _read_output(info, ended.stdout)
    finding = _end(ended.returncode, ended.stderr)
    return _read_output(
        info, ended.stdout, finding, "report it to the authors of the backend, with its output"
    )


def _end(code: int, output: str) -> str:
    """Return how a process ended, with the last lines that it wrote."""
    how = f"it ended with exit status {code}"
    if code < 0:
        names = {number.value: number.name for number in signal.Signals}
        how = f"it died of {names.get(-code, f'signal {-code}')}"
    last = output.strip().splitlines()[-3:]
    return "\n".join([how, *last])


def _read_output(info: Line, output: str, end: str = "", advice: str = "") -> list[Line]:
    """Return lines for the output of a probe and, if it ended early, for how it ended."""
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
            found = [_line(info["name"], "", "warning", text) for text in event["warnings"]]
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
    advice = f"do not use it; find the kernels: tensorplug-conformance run --backend {backend}"
    return _line(backend, event["device"], "failed", finding, advice)


def _hint(info: Line, event: Line) -> str:
    """Return what to do about an error."""
    error = event["error"]
    if error.startswith("BackendUnavailableError"):
        return "its hardware or driver is missing; the message says what it looked for"
    if "MemoryError" in error:
        return "free memory on the device, or end other programs"
    if event["failed"] == "device":
        return f"find the kernels: tensorplug-conformance run --backend {info['name']}"
    if error.startswith("PluginVersionError"):
        return _ADVICE["incompatible"].format(distribution=info["distribution"])
    return _ADVICE["failed"].format(distribution=info["distribution"])
