"""Measures a backend kernel by kernel, in a process of its own that a crash may take down."""

from __future__ import annotations

import fnmatch
import multiprocessing
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import TensorplugError
from tensorplug.plugins.metadata import BACKENDS
from tensorplug.plugins.selection import Selection
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.performance.measuring import REFERENCE, Stopwatch
from tensorplug_conformance.session import engine_factory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.connection import Connection

    from tensorplug_conformance.checks import Target

__all__ = ["NotMeasurableError", "measure"]

_PATIENCE: Final = 60.0  # seconds for all sizes of one kernel
_OPENING: Final = 180.0  # seconds until the device is measured
_LOSSES: Final = 10  # processes


class NotMeasurableError(Exception):
    """The backend cannot be measured; the message says why."""


class _Process:
    """A process that measures the kernels whose names it is sent."""

    def __init__(self, target: Target, cpu: bool) -> None:  # two calls, both here
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        arguments = (theirs, target.backend, target.factory, cpu)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self.introduction = self._received(_OPENING)
        if "error" in self.introduction:
            self.stop()
            raise NotMeasurableError(f"{target.backend}: {self.introduction['error']}")

    def kernel(self, name: str) -> dict[str, Any]:
        """Return the rows of a kernel, or an error and that the process is gone."""
        try:
            self._connection.send(name)
        except ConnectionError:
            return {"error": "the process ended", "gone": True}
        return self._received(_PATIENCE)

    def _received(self, seconds: float) -> dict[str, Any]:
        try:
            if self._connection.poll(seconds):
                found: dict[str, Any] = self._connection.recv()
                return found
        except (EOFError, ConnectionError):
            self._process.join()
            return {"error": f"the process ended: {self._process.exitcode}", "gone": True}
        return {"error": f"it took more than {seconds:.0f} s", "gone": True}

    def stop(self) -> None:
        self._connection.close()
        self._process.kill()
        self._process.join()


def _serve(connection: Connection, backend: str, factory: str | None, cpu: bool) -> None:
    try:
        build = engine_factory(factory)
        stopwatch = Stopwatch(backend, build, engine_factory(None) if cpu else None)
        device = stopwatch.device
        introduction = {
            "limits": stopwatch.limits(),
            "distribution": device.owner.distribution,
            "version": device.owner.version,
            "device": device.backend.device,
        }
    except Exception as error:  # noqa: BLE001  # whatever a backend raises
        connection.send({"error": f"{type(error).__name__}: {error}"})
        return
    connection.send(introduction)
    known = entries(extension_tables())
    while True:
        try:
            name = connection.recv()
        except EOFError:
            return
        try:
            connection.send({"rows": stopwatch.kernel(known[name])})
        except Exception as error:  # noqa: BLE001  # of the making of cases, as of a backend
            connection.send({"error": f"{type(error).__name__}: {error}"})


def measure(
    target: Target,
    kernels: Sequence[str] = (),
    told: Callable[[int, int, str], None] = lambda _done, _all, _now: None,
) -> dict[str, Any]:
    """Return the times of the kernels that match ``kernels`` (all if there are none).

    ``told`` hears how many kernels are done, how many there are, and which is next.

    Raises:
        NotMeasurableError: the backend does not open, or no kernel matches.

    """
    names = sorted(entries(extension_tables()))
    if kernels:
        names = [name for name in names if any(fnmatch.fnmatchcase(name, g) for g in kernels)]
    if not names:
        raise NotMeasurableError(f"no kernel of the catalogue is called {', '.join(kernels)}")
    began, clock = datetime.now(UTC), time.monotonic()
    beside = target.backend.partition(":")[0] != REFERENCE and _is_installed(REFERENCE)
    process = _Process(target, beside)
    introduction = process.introduction
    rows: list[dict[str, Any]] = []
    without: list[str] = []
    failed: dict[str, str] = {}
    losses = 0
    try:
        for number, name in enumerate(names):
            told(number, len(names), name)
            found = process.kernel(name)
            if "error" in found:
                failed[name] = found["error"]
            elif not found["rows"]:
                without.append(name)
            rows += found.get("rows", [])
            if found.get("gone"):
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
        "beside": REFERENCE if beside else "",
        "limits": introduction["limits"],
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
