"""Keeps a worker process at work: a crash or a hang is a verdict, and the run goes on."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorplug_conformance.checks import Target

__all__ = ["Item", "Limits", "Outcome", "supervise"]

Item = tuple[Any, ...]  # ("check", level, id) or ("row", kernel, dtype, mode)
_POLL: Final = 0.02


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds: for one item, and for all the items of one call of ``supervise``."""

    item: float = 300.0  # a device compiler on a busy machine takes minutes for a row
    level: float = 1800.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an item: the worker's verdict, or why there is none."""

    item: Item
    verdict: dict[str, Any] | None
    error: str = ""


class _Process:
    """One worker process, and what it has said so far."""

    def __init__(self, folder: Path, request: dict[str, Any]) -> None:
        self._events = folder / "events"
        self._events.write_text("")
        self._output = folder / "output"
        (folder / "request").write_text(json.dumps(request), "utf-8")
        command = [sys.executable, "-m", "tensorplug_conformance.worker"]
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(  # our own module
                [*command, str(folder / "request"), str(self._events)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._at = 0

    def heard(self) -> list[dict[str, Any]]:
        """Return the events since the last call; whole lines only."""
        with self._events.open("rb") as events:
            events.seek(self._at)
            text = events.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._at += len(whole)
        return [json.loads(line) for line in whole.splitlines()]

    def ended(self) -> bool:
        """Return whether the process is over."""
        return self._process.poll() is not None

    def stop(self) -> None:
        """Kill the process, if it still runs."""
        self._process.kill()
        self._process.wait()

    def epitaph(self) -> str:
        """Return how the process ended, with the last it wrote."""
        code = self._process.returncode
        how = f"died of signal {-code}" if code < 0 else f"ended with exit status {code}"
        last = self._output.read_text("utf-8", errors="replace").strip().splitlines()[-8:]
        return "\n".join([f"the process {how}", *last])


def supervise(
    target: Target,
    items: Iterable[Item],
    seed: int,
    limits: Limits,
    heard: Callable[[Outcome], None],
    introduced: Callable[[dict[str, Any]], None] | None = None,
) -> list[Outcome]:
    """Run ``items`` on ``target``; return one outcome for each, in order.

    ``heard`` is called with each outcome as it comes; ``introduced`` with what the backend
    says of itself, or with an ``error``.
    """
    waiting = deque(enumerate(items))
    listed = [item for _, item in waiting]
    outcomes: dict[int, Outcome] = {}
    deadline = time.monotonic() + limits.level

    def close(number: int, verdict: dict[str, Any] | None, error: str = "") -> None:
        outcomes[number] = Outcome(listed[number], verdict, error)
        heard(outcomes[number])

    while waiting and time.monotonic() < deadline:
        with tempfile.TemporaryDirectory(prefix="tensorplug-conformance-") as folder:
            request = {
                "backend": target.backend,
                "factory": target.factory,
                "seed": seed,
                "introduce": introduced is not None,
                "items": list(waiting),
            }
            process = _Process(Path(folder), request)
            try:
                told = _follow(process, waiting, limits, deadline, close, introduced)
            finally:
                process.stop()
        introduced = None
        if not told and waiting:  # it ended before it began anything: so would the next one
            break
    for number, _ in waiting:
        close(
            number,
            None,
            "not run: the time limit of the level was spent before, or no worker starts",
        )
    return [outcomes[number] for number in range(len(listed))]


def _follow(
    process: _Process,
    waiting: deque[tuple[int, Item]],
    limits: Limits,
    deadline: float,
    close: Callable[..., None],
    introduced: Callable[[dict[str, Any]], None] | None,
) -> bool:
    """Take ``waiting`` items off as they are done, until the process ends or must be stopped.

    Returns whether anything was begun.
    """
    begun: int | None = None
    told = False
    since = time.monotonic()
    while True:
        over = process.ended()  # asked before reading, so that nothing said last is lost
        for event in process.heard():
            told, since = True, time.monotonic()
            if event["event"] == "begin":
                begun = event["item"]
            elif event["event"] == "backend":
                if introduced is not None:
                    introduced(event.get("backend") or {"error": event["error"]})
            else:
                waiting.popleft()
                close(begun, event.get("verdict"), event.get("error", ""))
                begun = None
        if over:
            if begun is not None:
                waiting.popleft()
                close(begun, None, process.epitaph())
            elif not told and waiting:
                number, _ = waiting.popleft()
                close(number, None, process.epitaph())
            return told
        now = time.monotonic()
        if now > deadline or now - since > limits.item:
            if begun is not None:
                waiting.popleft()
                close(begun, None, f"it hung: no end within {now - since:.0f} s")
            return True
        time.sleep(_POLL)
