"""A plugin of pytest: tells the outcome of each test at once, and runs on the chosen device.

Tests of all files take turns, so that a stopped run has tried some of each. Tests with an outcome
from an earlier process are left out: that process died, and this one continues.
"""

from __future__ import annotations

import json
import os
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from telling import FILE, tell

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--opencl-device", type=int, default=0, help="the number of the one to use")


def pytest_configure(config: pytest.Config) -> None:
    global _silent  # noqa: PLW0603  # once in a process
    _silent = hasattr(config, "workerinput")  # the process that hands the tests out tells
    number = config.getoption("--opencl-device")
    if number:
        from tensorplug_opencl import device

        choose = device.choose
        device.choose = lambda wanted: choose(str(number) if wanted is None else wanted)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    done = told()
    if not done and _first(config):
        tell("collected", count=len(items))
    place: dict[str, int] = {}
    for _, some in groupby(items, key=lambda item: item.nodeid.partition("::")[0]):
        place |= {item.nodeid: at for at, item in enumerate(some)}
    items[:] = sorted(
        (item for item in items if item.nodeid not in done), key=lambda item: place[item.nodeid]
    )


def _first(config: pytest.Config) -> bool:
    """Return whether this is the only process, or the first one of those that run tests."""
    return getattr(config, "workerinput", {"workerid": "gw0"})["workerid"] == "gw0"


def told() -> set[str]:
    """Return the tests whose outcomes are known."""
    return {record["test"] for record in records() if record["about"] == "outcome"}


def records() -> list[dict[str, Any]]:
    """Return the records so far."""
    file = Path(os.environ[FILE])
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line]


def pytest_runtest_logstart(nodeid: str) -> None:
    if not _silent:
        tell("start", test=nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if _silent:
        return
    outcome = report.outcome
    if report.when == "???":  # pytest-xdist's message for a test that took its process down
        outcome = "crashed"
    elif outcome == "passed" and report.when != "call":
        return
    if report.when == "teardown" and report.nodeid in _seen:
        if outcome == "skipped":
            return
        tell("error", why=f"{report.nodeid}, teardown: {_message(report)}")
        return
    _seen.add(report.nodeid)
    tell("outcome", test=report.nodeid, outcome=outcome, message=_message(report))


_silent = False
_seen: set[str] = set()


def _message(report: pytest.TestReport) -> str:
    if report.outcome == "passed":
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return str(crash.message)[:500]
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[-1])[:500]
    return str(report.longrepr)[-500:]
