"""Tries each backend in a separate process, so that a crash of one is only a finding."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tensorplug.command_line.listings import installed
from tensorplug.plugins import selection
from tensorplug.system import child_processes
from tensorplug.system.distributions import backend_cure, pip_install

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


Line = dict[str, Any]

_PATIENCE: Final = 20.0  # seconds for an extension
_HUNG: Final = "it did not end within"
# What ``faulthandler`` writes of a process that took too long: its innermost line.
_LATE: Final = re.compile(r'^Timeout \(.*\n(?:Thread.*\n)?\s*File (".*", line \d+)', re.MULTILINE)

_DENY: Final = "TENSORPLUG_DISABLE_PLUGINS"


def examine(name: str | None, seconds: float) -> list[Line]:
    """Try each backend, or only ``name``, and return a line per device.

    ``state`` is "ok" or "failed", or "refused" for a device that its backend refuses while it
    has others; ``advice`` says what to do. ``seconds``: the time limit for one backend; each
    extension has 20 at most. One that hangs or ends the process has a line of its own, and the
    backends are tried without it.
    """
    backends = installed()
    known = [line for line in backends if line["kind"] == "backend"]
    asked = [info for info in known if name in (None, info["name"])]
    lines: list[Line] = []
    extensions = [line for line in backends if line["kind"] == "extension"]
    skipped: list[Line] = []
    tried = False  # each extension alone
    for info in asked:
        ended = _run(info, seconds, skipped)
        while ended is not None and ended.hung:
            hung = [line for line in extensions if _qualified(line) == ended.hung]
            lines += [_blame(line, ended.how) for line in hung]
            skipped += hung
            ended = _run(info, seconds, skipped)
        if ended is not None and not ended.loaded_extensions and not tried:
            tried = True
            others = [line for line in extensions if line not in skipped]
            skipped += [line for line in others if _ends(line, seconds, lines)]
            ended = _run(info, seconds, skipped)
        lines += _unusable(info) if ended is None else _read_output(info, ended)
    return lines or [_missing(name, [info["name"] for info in known])]


def _missing(name: str | None, known: Sequence[str]) -> Line:
    if name is None:
        return _line("", "", "failed", "no backend is installed", backend_cure("cpu"))
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


def _advise(state: str, info: Line) -> str:
    """Return what to do about a backend in a state; "" if there is nothing to say."""
    distribution = info["distribution"]
    if state == "incompatible":
        command = pip_install("tensorplug", distribution, options="--upgrade")
        return f"install versions that fit: {command}"
    if state == "conflict":
        return "two distributions have this name: uninstall one of them"
    if state == "disabled":
        return "it is disabled by TENSORPLUG_DISABLE_PLUGINS"
    if state == "failed":
        command = pip_install(distribution, options="--force-reinstall")
        return f"it is installed, but broken: {command}"
    return ""


def _unusable(info: Line) -> list[Line]:
    """Return the line of a backend that cannot be loaded, as its metadata alone shows."""
    advice = _advise(info["state"], info)
    finding = f"{info['state']}: {info['detail']}" if info["detail"] else info["state"]
    return [_line(info["name"], "", "failed", finding, advice)]


@dataclass(frozen=True, slots=True)
class _Ended:
    """A probe that has ended: its events, and how it ended, if not normally."""

    events: list[Line]
    how: str = ""
    advice: str = ""

    @property
    def hung(self) -> str:
        """The extension, as ``distribution:name``, that took too long; "" if none did."""
        last = self.running
        hung = self.how.startswith(_HUNG) and last.get("kind") == "extension"
        return str(last["running"]) if hung else ""

    @property
    def running(self) -> Line:
        """The last event about a plugin whose code runs, or has run."""
        started = [event for event in self.events if "running" in event]
        return started[-1] if started else {}

    @property
    def loaded_extensions(self) -> bool:
        return any(event.get("step") == "load" or "failed" in event for event in self.events)


def _run(info: Line, seconds: float, skipped: Iterable[Line]) -> _Ended | None:
    """Run a probe of a backend without the skipped extensions; None if it must not be tried."""
    if info["state"] not in ("available", "loaded"):
        return None
    denied = [os.environ.get(_DENY, ""), *(_qualified(line) for line in skipped)]
    return _probe(info["name"], {_DENY: ",".join(filter(None, denied))}, seconds)


def _ends(extension: Line, seconds: float, lines: list[Line]) -> bool:
    """Return whether an extension ends its process, and add a line for it if so."""
    if extension["state"] not in ("available", "loaded"):
        return False  # it is not loaded
    ended = _probe("", {"TENSORPLUG_PLUGINS": _qualified(extension)}, seconds)
    if ended.loaded_extensions:
        return False
    lines.append(_blame(extension, ended.how))
    return True


def _blame(extension: Line, how: str) -> Line:
    """Return the line of an extension that hangs, or ends its process."""
    what = "{name!r} of {distribution} {version}".format_map(extension)
    advice = f"report it to its authors; to skip it: {_DENY}={_qualified(extension)}"
    return _line("", "", "failed", f"extension {what}: {how}", advice)


def _qualified(plugin: Line) -> str:
    return f"{plugin['distribution']}:{plugin['name']}"


def _probe(name: str, environment: Mapping[str, str], seconds: float) -> _Ended:
    patience = min(seconds / 2, _PATIENCE)
    module = "tensorplug.command_line.probe"
    command = [sys.executable, *child_processes.module_arguments(module, name, str(patience))]
    try:
        ended = subprocess.run(  # our own module
            command,
            env={**os.environ, **environment},
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        events = _events(late.stdout or b"")
        hung = _Ended(events, f"{_HUNG} {seconds:.0f} s")
        when, skip = hung.running.get("when", ""), hung.running.get("running")
        advice = "look for a hanging driver" + (f"; to skip it: {_DENY}={skip}" if skip else "")
        return _Ended(events, f"{hung.how} {when}".rstrip(), advice)
    events = _events(ended.stdout)
    late_at = _LATE.search(ended.stderr.decode(errors="replace"))
    if late_at and ended.returncode == 1:
        when = _Ended(events).running.get("when", "")
        return _Ended(events, f"{_HUNG} {patience:.0f} s {when}, in {late_at[1]}")
    if ended.returncode in (0, 1) and any(event.get("done") == "backend" for event in events):
        return _Ended(events)
    how = _end(ended.returncode, ended.stderr.decode(errors="replace"))
    return _Ended(events, how, "report it to the authors of the backend, with its output")


def _events(output: bytes) -> list[Line]:
    """Return the events of a probe; the last one may be cut off."""
    lines = output.decode(errors="replace").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def _end(code: int, output: str) -> str:
    """Return how a process ended, with the last lines that it wrote."""
    how = f"it ended with exit status {code}"
    if code < 0:
        names = {number.value: number.name for number in signal.Signals}
        how = f"it died of {names.get(-code, f'signal {-code}')}"
    last = output.strip().splitlines()[-3:]
    return "\n".join([how, *last])


def _read_output(info: Line, ended: _Ended) -> list[Line]:
    """Return lines for the events of a probe and, if it ended early, for how it ended."""
    lines, begun = [], ""
    for event in ended.events:
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
            lines += [_line(info["name"], "", "warning", text) for text in event["warnings"]]
    if ended.how and not ended.loaded_extensions:  # not the backend's fault, nor one extension's
        advice = "try without the extensions: TENSORPLUG_PLUGINS={distribution}:{name}"
        finding = f"while the extensions were loaded: {ended.how}"
        lines.append(_line(info["name"], "", "failed", finding, advice.format_map(info)))
    elif ended.how:
        lines.append(_line(info["name"], begun, "failed", ended.how, ended.advice))
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
        return _advise("incompatible", info)
    return _advise("failed", info)
