"""Measures a backend kernel by kernel, in a process of its own that a crash may take down."""

from __future__ import annotations

import fnmatch
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import TensorplugError
from tensorplug.plugins.metadata import BACKENDS
from tensorplug.plugins.selection import Selection
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.performance.measuring import REFERENCE, Stopwatch
from tensorplug_conformance.running.peer import Peer, PeerLostError, Requests
from tensorplug_conformance.session import engine_factory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.checks import Target


_BUDGET: Final = 280.0  # seconds for all kernels, unless two calls of each take longer
_KERNEL: Final = 10.0  # of these at most for one kernel
_PATIENCE: Final = 60.0  # seconds for all sizes of one kernel
_OPENING: Final = 180.0  # seconds until the device is measured
_LOSSES: Final = 10  # processes


class NotMeasurableError(Exception):
    """The backend cannot be measured; the message says why."""


class _Process:
    """A process that measures the kernels whose names it is sent."""

    def __init__(self, target: Target, beside: str) -> None:
        module = "tensorplug_conformance.performance.measurement"
        self._peer = Peer(module, [target.backend, target.factory or "", beside])
        self.introduction = self._received(_OPENING)
        if "error" in self.introduction:
            self.stop()
            raise NotMeasurableError(f"{target.backend}: {self.introduction['error']}")

    def kernel(self, name: str, seconds: float) -> dict[str, Any]:
        """Return the rows of a kernel, or an error and that the process is gone."""
        self._peer.send((name, seconds))
        return self._received(_PATIENCE)

    def _received(self, seconds: float) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = self._peer.receive(seconds)
        except PeerLostError as error:
            return {"error": str(error), "gone": True}
        return answer

    def stop(self) -> None:
        self._peer.stop()


def main(backend: str, factory: str, beside: str) -> None:
    """Introduce the backend, then answer with the rows of each kernel that is asked for."""
    requests = Requests()
    try:
        stopwatch = Stopwatch(
            backend, engine_factory(factory or None), engine_factory(None) if beside else None
        )
        device, limits = stopwatch.device, stopwatch.limits()
        introduction = {
            "limits": limits["native"],
            "beside_limits": limits.get(REFERENCE),
            "distribution": device.owner.distribution,
            "version": device.owner.version,
            "device": device.backend.device,
        }
    except Exception as error:  # noqa: BLE001  # whatever a backend raises
        requests.answer({"error": f"{type(error).__name__}: {error}"})
        return
    requests.answer(introduction)
    known = entries(extension_tables())
    with suppress(EOFError):
        while True:
            name, seconds = requests.receive()
            requests.answer(_answer(stopwatch, known[name], seconds))


def _answer(stopwatch: Stopwatch, entry: CaseEntry, seconds: float) -> dict[str, Any]:
    try:
        return {"rows": stopwatch.kernel(entry, seconds)}
    except Exception as error:  # noqa: BLE001  # of the making of cases, as of a backend
        return {"error": f"{type(error).__name__}: {error}"}


def measure(
    target: Target,
    kernels: Sequence[str] = (),
    progress: Callable[[int, int, str], None] = lambda _done, _all, _now: None,
) -> dict[str, Any]:
    """Return the times of the kernels that match ``kernels`` (all if there are none).

    ``progress`` hears how many kernels are done, how many there are, and which is next. The
    kernels share a budget of time: what one leaves, the later ones have.

    Raises:
        NotMeasurableError: the backend does not open, or no kernel matches.

    """
    names = sorted(entries(extension_tables()))
    if kernels:
        names = [name for name in names if any(fnmatch.fnmatchcase(name, g) for g in kernels)]
    if not names:
        raise NotMeasurableError(f"no kernel of the catalogue is called {', '.join(kernels)}")
    began, clock = datetime.now(UTC), time.monotonic()
    other = target.backend.partition(":")[0] != REFERENCE
    beside = REFERENCE if other and _is_installed(REFERENCE) else ""
    process = _Process(target, beside)
    introduction = process.introduction
    rows: list[dict[str, Any]] = []
    without: list[str] = []
    failed: dict[str, str] = {}
    losses = 0
    try:
        for number, name in enumerate(names):
            progress(number, len(names), name)
            left = _BUDGET - (time.monotonic() - clock)
            share = min(max(left, 0.0) / (len(names) - number), _KERNEL)
            row = process.kernel(name, share)
            if "error" in row:
                failed[name] = row["error"]
            elif not row["rows"]:
                without.append(name)
            rows += row.get("rows", [])
            if row.get("gone"):
                losses += 1
                process.stop()
                if losses > _LOSSES:
                    raise NotMeasurableError(f"{losses} processes of {target.backend} were lost")
                process = _Process(target, beside)
    finally:
        process.stop()
    return {
        "distribution": introduction["distribution"],
        "version": introduction["version"],
        "device": introduction["device"],
        "started": began.isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - clock, 1),
        "beside": beside,
        "limits": introduction["limits"],
        "beside_limits": introduction["beside_limits"],
        "rows": rows,
        "without": without,
        "failed": failed,
    }


def _is_installed(backend: str) -> bool:
    try:
        Selection.read().pick(BACKENDS, backend)
    except TensorplugError:
        return False
    return True
