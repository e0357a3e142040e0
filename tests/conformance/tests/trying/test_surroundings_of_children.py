"""The suite's own processes start in any folder, whatever modules lie there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tensorplug_conformance.checks import Target
from tensorplug_conformance.checks.processes import run_module
from tensorplug_conformance.pools import spawned_pool
from tensorplug_conformance.running.peer import Peer
from tensorplug_conformance.running.supervisor import Limits, supervise

if TYPE_CHECKING:
    from pathlib import Path

ECHO = """
from tensorplug_conformance.running.peer import Requests

def main(word):
    requests = Requests()
    requests.answer(word + requests.receive())
"""
SHADOWED = ("types", "queue", "json", "socket", "selectors", "runpy", "pickle", "numpy", "rich")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SHADOWED:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')", "utf-8")
    monkeypatch.chdir(tmp_path)


def test_a_check_in_a_process() -> None:
    assert run_module("tensorplug_conformance.checks.probes", Target("cpu"), "settings") == ""


def test_a_worker() -> None:
    row = ("row", "Abs", "float32", "native")
    arguments = (Limits(), lambda _: None, lambda _: None, 1, {})
    (outcome,) = supervise(Target("cpu"), [row], 0, *arguments)
    assert outcome.verdict is not None, outcome.error
    assert outcome.verdict["status"] == "pass native"


def test_a_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its module lies in the folder of the program, which is searched too."""
    (tmp_path / "echo_of_this_test.py").write_text(ECHO, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    peer = Peer("echo_of_this_test", ["one "])
    try:
        peer.send("two")
        assert peer.receive(60) == "one two"
    finally:
        peer.stop()


def test_a_pool() -> None:
    before = os.environ.get("PYTHONSAFEPATH")
    with spawned_pool(1, abs, (1,)) as pool:
        assert pool.submit(abs, -3).result(60) == 3
    assert os.environ.get("PYTHONSAFEPATH") == before
