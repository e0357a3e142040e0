"""Pytest plugin: writes the outcome of each test to a file, which ``__main__`` compares.

The other plugins of this folder each make the tests of one project run on tensorplug, and nothing
else; they are loaded beside this one.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pytest

FILE: Final = "CLIENTS_OUTCOMES"
"""The environment variable with the path of the file."""

_ORDER: Final = ("passed", "skipped", "failed")  # a test fails if its setup or its teardown does
_outcomes: Final[dict[str, str]] = {}
_messages: Final[dict[str, str]] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    old = _outcomes.get(report.nodeid, "passed")
    new = report.outcome
    if hasattr(report, "wasxfail"):
        new = "skipped"  # the project expects it of all namespaces
    _outcomes[report.nodeid] = max(old, new, key=_ORDER.index)
    if new == "failed":
        crash: Any = getattr(report.longrepr, "reprcrash", None)
        text = str(getattr(crash, "message", report.longrepr))
        _messages.setdefault(report.nodeid, " ".join(text.split())[:200])


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _outcomes[report.nodeid] = "failed"
        _messages[report.nodeid] = (
            "not collected: " + " ".join(str(report.longrepr).split())[-200:]
        )


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput"):
        return  # the process that started the workers has all reports
    found = {name: [outcome, _messages.get(name, "")] for name, outcome in _outcomes.items()}
    Path(os.environ[FILE]).write_text(json.dumps(found), encoding="utf-8")
