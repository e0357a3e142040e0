"""The progress of a run, where its output is not a terminal."""

from __future__ import annotations

import io
import threading
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from tensorplug_conformance.checks import Target
from tensorplug_conformance.denominator import Selection
from tensorplug_conformance.running import certify as certification
from tensorplug_conformance.running.certify import certify
from tensorplug_conformance.running.progress import ProgressBar, ProgressLines, progress
from tensorplug_conformance.verdicts import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECK = ("check", 0, "opens again")
ROW = ("row", "Neg", "float32", "native")


def outcome(status: str | None, item: tuple[Any, ...] = ROW) -> Outcome:
    return Outcome(item, None, "it died") if status is None else Outcome(item, {"status": status})


class Log:
    """The flushed lines of a display, and a clock that a test moves."""

    def __init__(self, **options: Any) -> None:
        self._raw = io.BytesIO()
        file = io.TextIOWrapper(io.BufferedWriter(self._raw, 1 << 20), encoding="ascii")  # type: ignore[arg-type]
        self.now = 1000.0
        self.display = ProgressLines(
            Console(file=file, width=40), "acme", 3, 2, clock=lambda: self.now, **options
        )

    def new(self) -> list[str]:
        """Return the lines since the last call."""
        text = self._raw.getvalue().decode("ascii")
        self._raw.seek(0)
        self._raw.truncate()
        return text.splitlines()


@pytest.fixture
def log() -> Iterator[Log]:
    """A log that writes only when a test says so."""
    made = Log(poll=1e9)
    with made.display:
        yield made


@pytest.mark.parametrize(
    ("items", "counted"),
    [
        ([CHECK] * 3 + [ROW] * 20, "20 rows and 3 checks"),
        ([ROW], "1 row"),
        ([CHECK], "1 check"),
        ([], "nothing"),
    ],
)
def test_the_first_line_says_what_runs(items: list[Any], counted: str, log: Log) -> None:
    log.display.started(items)
    assert log.new() == [f"backend 'acme', level 3: {counted} in 2 processes"]


def test_a_line_for_every_tenth(log: Log) -> None:
    log.display.started([CHECK] + [ROW] * 24)
    log.new()
    at = []
    for number in range(1, 26):
        log.display.heard(outcome("pass native"))
        at += [number] * len(log.new())
    assert at == [3, 5, 8, 10, 13, 15, 18, 20, 23, 25]


def test_what_a_line_says(log: Log) -> None:
    log.display.started([CHECK] + [ROW] * 3)
    log.new()
    log.now += 61
    log.display.heard(outcome("pass", CHECK))
    log.display.heard(outcome("fail"))
    log.now += 3600
    log.display.heard(outcome(None))
    log.display.heard(outcome("not claimed"))
    assert log.new() == [
        "1 of 4 done (25%), 0 failed, 0:01:01 elapsed, about 0:03:03 left",
        "2 of 4 done (50%), 1 failed, 0:01:01 elapsed, about 0:01:01 left",
        "3 of 4 done (75%), 2 failed, 1:01:01 elapsed, about 0:20:20 left",
        "4 of 4 done (100%), 2 failed, 1:01:01 elapsed",
    ]


@pytest.mark.parametrize("status", ["fail", "fallback", "missing"])
def test_what_blocks_has_failed(status: str, log: Log) -> None:
    log.display.started([ROW])
    log.display.heard(outcome(status))
    assert ", 1 failed, " in log.new()[-1]


def test_where_failures_are_expected_the_line_says_what_it_counts() -> None:
    log = Log(poll=1e9, expecting=True)
    with log.display:
        log.display.started([ROW])
        log.display.heard(outcome("fail"))
    assert ", 1 failed (expected or not), " in log.new()[-1]


def test_a_line_after_a_while_though_nothing_ends(log: Log) -> None:
    log.display.started([ROW] * 1000)
    log.new()
    for seconds in (20, 20, 20, 20):
        log.now += seconds
        log.display.tick()
    assert log.new() == [
        "0 of 1000 done (0%), 0 failed, 0:00:40 elapsed",
        "0 of 1000 done (0%), 0 failed, 0:01:20 elapsed",
    ]


def test_the_clock_is_looked_at_while_nothing_ends() -> None:
    log = Log(poll=0.001)
    threads = threading.active_count()
    written: list[str] = []
    with log.display:
        log.display.started([ROW] * 1000)
        log.now += 31
        for _ in range(10_000):
            written += log.new()
            if len(written) == 2:
                break
            threading.Event().wait(0.001)
    assert written[1:] == ["0 of 1000 done (0%), 0 failed, 0:00:31 elapsed"]
    assert threading.active_count() == threads


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Console(file=Terminal())
    shown = progress(screen, "acme", 3, 2)
    assert isinstance(shown, ProgressBar)
    with shown:
        shown.started([ROW] * 4)
        shown.heard(outcome("pass native"))
    assert isinstance(screen.file, Terminal)
    text = screen.file.getvalue()
    assert "level 3" in text
    assert "1/4" in text
    assert "Neg float32 native" in text


def test_colours_in_a_log_do_not_make_it_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert isinstance(progress(Console(file=io.StringIO()), "acme", 3, 2), ProgressLines)


def test_a_run_says_what_it_is_before_it_counts_the_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def fingerprint(*_: Any) -> tuple[int, str]:
        order.append("cases")
        return 0, ""

    monkeypatch.setattr(certification, "fingerprint", fingerprint)
    monkeypatch.setattr(certification, "supervise", lambda *_args, **_more: [])
    certify(
        Target("cpu"),
        2,
        selection=Selection(("Neg",), ("float32",)),
        started=lambda items: order.append(f"{len(items)} items"),
    )
    assert order == ["1 items", "cases"]
