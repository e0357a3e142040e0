"""The process that runs a backend: ``python -m ...worker EVENTS``.

It reads a request from its standard input, then one item after another. It appends a line of JSON
per event to a file, so that the supervisor knows what was done if the backend crashes the process.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from tensorplug.plugin import TensorplugError
from tensorplug_conformance import evidence
from tensorplug_conformance.checks import CheckFailedError, NotMeasuredError, Target, checks
from tensorplug_conformance.comparing.vendor import flushed
from tensorplug_conformance.denominator import LEVELS, Row, entries
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.running.comparing import is_outside
from tensorplug_conformance.running.process import COLLECTED, told_beside
from tensorplug_conformance.session import Session, engine_factory
from tensorplug_conformance.trying.notes import Notes, unnoted
from tensorplug_conformance.trying.references import References
from tensorplug_conformance.trying.rows import run_row
from tensorplug_conformance.trying.surroundings import Functions, Surroundings
from tensorplug_conformance.verdicts import CheckVerdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorplug_conformance.denominator import Mode
    from tensorplug_conformance.evidence import EvidenceVerdict
    from tensorplug_conformance.verdicts import Item, RowVerdict


class Worker:
    """Runs items on one target, with one session per mode, opened when it is first needed."""

    def __init__(
        self, target: Target, seed: int, reached: Callable[[str], None] = unnoted
    ) -> None:
        self.target = target
        self._reached = reached
        self.seed = seed
        self.known = entries(extension_tables())
        self._checks = {
            (check.level, check.id): check for level in LEVELS for check in checks(level)
        }
        self._sessions: dict[bool, Session] = {}
        self._references = References()
        self._functions = Functions()

    def session(self, *, primitives_only: bool = False) -> Session:
        """Return the session of a mode."""
        if primitives_only not in self._sessions:
            factory = engine_factory(self.target.factory)
            self._sessions[primitives_only] = Session(
                factory,
                self.target.backend,
                primitives_only=primitives_only,
                falls_back=self.target.falls_back,
            )
        return self._sessions[primitives_only]

    def check(self, level: int, name: str) -> CheckVerdict:
        """Return the verdict on a check."""
        started = time.perf_counter()
        verdict = CheckVerdict(level, name, "pass")
        surroundings = Surroundings()
        try:
            verdict.message = self._checks[level, name].run(self.target, self.session) or ""
        except NotMeasuredError as reason:
            verdict.status, verdict.message = "not measured", str(reason)
        except CheckFailedError as fault:
            verdict.status, verdict.message = "fail", str(fault)
        except Exception as error:  # noqa: BLE001  # whatever a backend raises is a verdict
            verdict.status, verdict.message = "fail", f"{type(error).__name__}: {error}"
        changed = surroundings.fault() or self._replaced()
        if changed:
            verdict.status, verdict.message = "fail", f"{verdict.message}; {changed}".lstrip("; ")
        verdict.seconds = time.perf_counter() - started
        return verdict

    def _replaced(self) -> str:
        """Return which functions the backend has replaced; empty if none."""
        names = self._functions.replaced()
        return f"functions were replaced in the process: {', '.join(names[:3])}" * bool(names)

    def row(
        self,
        kernel: str,
        dtype: str,
        mode: Mode,
        examples: int = 0,
        *,
        told: BinaryIO | None = None,
    ) -> RowVerdict:
        """Return the verdict on a row of cases and random examples.

        ``told``: takes what is compared in another process.
        """
        row = Row(kernel, dtype, mode)
        session = self.session(primitives_only=row.mode == "decomposed")
        verdict = run_row(
            session,
            self.known[row.kernel],
            row,
            self.seed,
            self._references,
            self._reached,
            told,
        )
        if examples:
            # Hypothesis is a sixth of what a worker imports, and few runs have examples.
            from tensorplug_conformance.trying.examples import add_examples

            add_examples(verdict, session, self.known[row.kernel], self.seed, examples)
        replaced = self._replaced()
        if replaced:
            verdict.status = verdict.vendor = "fail"
            verdict.reason = replaced
        return verdict

    def zeros(self, item: Item) -> list[str]:
        """Return the dtypes whose subnormal numbers the device flushes, for a row."""
        device = (
            self.session(primitives_only=item[3] == "decomposed").device
            if item[0] == "row"
            else None
        )
        return sorted(dtype.name for dtype in flushed(device)) if device else []

    def evidence(self, collection: str, group: str, test: str) -> EvidenceVerdict:
        """Return the verdict on a test that others wrote."""
        return evidence.run(self.session(), collection, group, test)

    def introduce(self) -> dict[str, Any]:
        """Return the backend's description of itself."""
        session = self.session()
        device = session.device
        return {
            "device": device.backend.device,
            "distribution": device.owner.distribution,
            "version": device.owner.version,
            "drivers": _drivers(session),
            "dtypes": sorted(dtype.name for dtype in device.backend.dtypes),
            "flushes": sorted(dtype.name for dtype in flushed(device)),
            **_limit(device.capabilities.largest_buffer),
            "kernels": sorted(session.engine.registry.state.specs),
        }


def _limit(largest: int | None) -> dict[str, int]:
    return {} if largest is None else {"largest_buffer": largest}


def _drivers(session: Session) -> dict[str, str]:
    """Return what the plugin says of its drivers; nothing where the backend is not a plugin's."""
    source: Any = session.engine.devices.source
    if not hasattr(source, "diagnostics"):
        return {}
    try:
        return dict(source.diagnostics(session.device.backend_name))
    except TensorplugError as error:  # the report is not worth less without
        return {"drivers": f"not known: {error}"}


def main(arguments: list[str]) -> int:
    """Run items until the input ends; append events to the file."""
    faulthandler.enable()
    gc.set_threshold(*COLLECTED)
    said = Path(arguments[0])
    with _input_lines() as lines, said.open("a", encoding="utf-8") as events, Notes(said) as notes:
        place = os.fstat(events.fileno())

        def say(**event: Any) -> None:
            if not os.path.samestat(place, os.fstat(events.fileno())):
                raise OSError("the file of events was closed, and another one took its number")
            notes.write("")
            events.write(json.dumps(event) + "\n")
            events.flush()

        _work(json.loads(lines.readline()), map(json.loads, lines), say, notes.write, said)
    return 0


def _input_lines() -> TextIO:
    """Return the input, out of the backend's reach: its standard input is empty."""
    mine = os.dup(sys.stdin.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    return os.fdopen(mine, encoding="utf-8")


def _work(
    request: dict[str, Any],
    items: Iterable[tuple[int, Item]],
    say: Callable[..., None],
    reached: Callable[[str], None],
    said: Path,
) -> None:
    parent = os.getppid()
    target = Target(**{**request["target"], "seed": request["seed"]})
    worker = Worker(target, request["seed"], reached)
    runs: dict[str, Callable[..., Any]] = {
        "check": worker.check,
        "row": worker.row,
        "evidence": worker.evidence,
    }
    if request["introduce"]:
        say(event="begin", item=None)
        try:
            say(event="backend", backend=worker.introduce())
        except Exception as error:  # noqa: BLE001  # a backend that does not open is a verdict
            say(event="backend", error=f"{type(error).__name__}: {error}")
    for number, item in items:
        say(event="begin", item=number)
        kind, *rest = item
        try:
            if is_outside(item):
                with told_beside(said, number).open("xb") as told:
                    verdict: Any = worker.row(*rest, told=told)
            else:
                verdict = runs[kind](*rest)
        except Exception as error:  # noqa: BLE001  # opening the backend failed: so did the row
            say(event="broken", item=number, error=f"{type(error).__name__}: {error}")
            continue
        if os.getppid() != parent:
            say(event="broken", item=number, error="it ended its parent process")
            return
        say(event="done", item=number, verdict=asdict(verdict), zeros=worker.zeros(item))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
