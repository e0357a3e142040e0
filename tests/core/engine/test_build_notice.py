"""The line that a terminal shows while a backend compiles."""

from __future__ import annotations

import io
import os
import sys
import threading
import time

import pytest

from tensorplug.engine import build_notice
from tensorplug.engine.build_notice import BuildNotice
from tensorplug.errors import SettingsError

pty = pytest.importorskip("pty", reason="Windows has none")
ENOUGH = 60.0  # seconds until a test gives up


class Terminal:
    """A terminal as stderr, and what appears on it."""

    def __init__(self):
        self.master, slave = pty.openpty()
        self.stream = os.fdopen(slave, "w", buffering=1, encoding="utf-8")

    def become_stderr(self, monkeypatch):
        """To be called by the test itself: pytest replaces stderr between a fixture and a test."""
        monkeypatch.setattr(sys, "stderr", self.stream)

    def read_line(self):
        """Return the text up to the next end of a line."""
        text = b""
        while not text.endswith(b"\n"):
            text += os.read(self.master, 1)
        return text.decode().rstrip("\r\n")

    def close(self):
        self.stream.close()
        os.close(self.master)


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.delenv("TENSORPLUG_BUILD_NOTICE", raising=False)
    monkeypatch.setenv("COLUMNS", "70")
    made = Terminal()
    yield made
    made.close()


def wait_until(condition):
    end = time.monotonic() + ENOUGH
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


@pytest.mark.parametrize(("kept", "end"), [(True, "kept"), (False, "not kept")])
def test_the_line_takes_the_place_of_a_progress_bar(monkeypatch, terminal, kept, end):
    terminal.become_stderr(monkeypatch)
    notice = BuildNotice("acme", "programs")
    for _ in range(2):
        with notice.building(kept=kept):
            pass  # far from a second
    monkeypatch.setattr(build_notice, "SECONDS", 0.0)
    terminal.stream.write("50% #####")
    with notice.building(kept=kept):
        wait_until(lambda: notice._shown)
    text = f"acme: building programs (3 so far), {end} for next time"
    assert terminal.read_line() == f"50% #####\r{text.ljust(69)}"
    with notice.building(kept=kept):
        assert notice._timer is None  # it appears once
    terminal.stream.write("next\n")
    assert terminal.read_line() == "next"


def test_threads_that_build_at_once_show_one_line(monkeypatch, terminal):
    terminal.become_stderr(monkeypatch)
    monkeypatch.setattr(build_notice, "SECONDS", 0.0)
    notice = BuildNotice("acme", "programs")
    together = threading.Barrier(6)

    def build():
        together.wait(ENOUGH)
        with notice.building(kept=True):
            together.wait(ENOUGH)
            wait_until(lambda: notice._shown)

    threads = [threading.Thread(target=build) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(ENOUGH)
    assert terminal.read_line().lstrip("\r").startswith("acme: building programs (")
    terminal.stream.write("next\n")
    assert terminal.read_line() == "next"
    assert notice._active == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda patch: patch.setenv("TENSORPLUG_BUILD_NOTICE", "0"),
        lambda patch: patch.setattr(sys, "stderr", None),
        lambda patch: patch.setattr(sys, "stderr", io.StringIO()),
        lambda patch: patch.setattr(build_notice.os, "getpid", lambda: -1),
        lambda patch: patch.setattr("multiprocessing.process.parent_process", lambda: "main"),
    ],
    ids=["switched off", "no stderr", "a file", "a forked child", "a worker"],
)
def test_nothing_appears_elsewhere(monkeypatch, terminal, change):
    import multiprocessing.process  # noqa: F401

    monkeypatch.setattr(build_notice, "SECONDS", 0.0)
    notice = BuildNotice("acme", "programs")
    terminal.become_stderr(monkeypatch)
    change(monkeypatch)
    with notice.building(kept=True):
        assert notice._timer is None
    terminal.become_stderr(monkeypatch)
    terminal.stream.write("next\n")
    assert terminal.read_line() == "next"


def test_a_value_that_is_not_allowed(monkeypatch):
    monkeypatch.setenv("TENSORPLUG_BUILD_NOTICE", "maybe")
    with (
        pytest.raises(SettingsError, match=r"TENSORPLUG_BUILD_NOTICE='maybe': must be 0 or 1"),
        BuildNotice("acme", "programs").building(kept=True),
    ):
        pass
