"""Tables without rich: how cells share the width of a terminal, and profiles as such tables."""

from __future__ import annotations

import io
import sys

import pytest
from tests.core.support import clocks

import tensorplug as tp
from tensorplug.observers import text_tables
from tensorplug.observers.text_tables import Column

FINDINGS = (
    ("backend", "state", "finding", "advice"),
    ("cpu", "ok", "NumPy 2.4; a step of gradient descent in 0.01 s", ""),
    (
        "acme",
        "failed",
        """it died of SIGSEGV
Fatal Python error: Segmentation fault
  File "/opt/acme/driver.py", line 7 in tensorplug_create_backend""",
        "report it to the backend's authors, with its output",
    ),
)
WIDE = """
backend  state   finding                                   advice
-------  ------  ----------------------------------------  -----------------------------------------
cpu      ok      NumPy 2.4; a step of gradient descent in
                 0.01 s
acme     failed  it died of SIGSEGV                        report it to the backend's authors, with
                 Fatal Python error: Segmentation fault    its output
                   File "/opt/acme/driver.py", line 7 in
                   tensorplug_create_backend
"""  # noqa: E501  # as wide as the terminal
NARROW = """
backend  state   finding                         advice
-------  ------  ------------------------------  -------------------------------
cpu      ok      NumPy 2.4; a step of gradient
                 descent in 0.01 s
acme     failed  it died of SIGSEGV              report it to the backend's
                 Fatal Python error:             authors, with its output
                 Segmentation fault
                   File "/opt/acme/driver.py",
                   line 7 in
                   tensorplug_create_backend
"""


def table(width, rows=FINDINGS):
    columns = [
        Column(title, right=title == "n", whole=title in ("backend", "state")) for title in rows[0]
    ]
    return text_tables.table(columns, rows[1:], width)


@pytest.mark.parametrize(("width", "expected"), [(100, WIDE), (80, NARROW)])
def test_cells_take_the_lines_that_they_need(width, expected):
    assert table(width).splitlines() == expected.strip("\n").splitlines()


@pytest.mark.parametrize("width", [1, 20, 43, 60, 79, 80, 200])
def test_narrow_terminals_lose_no_text(width):
    text = table(width)
    given = "".join(cell for row in FINDINGS for cell in row)
    for item in set(given) - set(" \n-"):
        assert text.count(item) == given.count(item), item
    assert max(map(len, text.splitlines())) <= max(width, 43)


def test_a_long_word_is_cut_and_numbers_stand_on_the_right():
    rows = (("n", "path"), ("7", "/" + 30 * "x"), ("4711", ""))
    assert table(20, rows).splitlines() == [
        "   n  path",
        "----  --------------",
        "   7  /xxxxxxxxxxxxx",
        "      xxxxxxxxxxxxxx",
        "      xxx",
        "4711",
    ]


def test_whole_cells_are_cut_where_nothing_else_helps():
    assert table(18, (("backend", "state"), ("a-very-long-name", "failed"))).splitlines() == [
        "backend     state",
        "----------  ------",
        "a-very-lon  failed",
        "g-name",
    ]


# Profiles -------------------------------------------------------------------------------

BY_KERNEL = """
Kernel                        Calls  Total ms  Share             New  On
----------------------------  -----  --------  ---------------  ----  ----------
Detour float32[1,3]               1    35.000   94.6% ##------  12 B  memory
                                                                      decomposed
Exp float32[1,3]                  1    20.000   54.1% ####      12 B  memory
                                                                      native
Multiply float32[1,3],            1     5.000   13.5% #         12 B  memory
float32[1,3]                                                          native
# in the kernel itself, - in those it calls
and 1 more; limit=None shows all
"""


@pytest.fixture
def profile(clock, monkeypatch):
    """A profile of kernels of known duration, where rich is not installed."""
    for name in list(sys.modules):
        if name.partition(".")[0] == "rich":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    return clocks.profile_of_four_calls(clock)


def shown(profile, **options):
    file = io.StringIO()
    profile.show(file=file, **options)
    return file.getvalue().splitlines()


def test_a_profile_by_kernel(profile):
    heading = str(profile).splitlines()[:2]
    assert shown(profile, limit=3, width=80) == [*heading, *BY_KERNEL.strip("\n").splitlines()]


def test_a_profile_by_call(profile):
    lines = shown(profile, by="call", width=110)
    assert lines[2].split() == ["At", "ms", "Kernel", "ms", "New", "Live", "On", "Line"]
    names = [line[lines[2].index("Kernel") :].rstrip() for line in lines[4:]]
    assert [name.partition(" float32")[0] for name in names] == [
        "Detour",
        "  Exp",
        "  Multiply",
        "Neg",
        "Neg",
    ]
    assert all("clocks.py:" in line for line in lines[4:])


@pytest.mark.parametrize("by", ["kernel", "call"])
def test_a_profile_fits_the_terminal(profile, by, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "70")
    profile.show(by=by)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 70


def test_a_profile_without_calls_is_a_heading(profile):
    assert len(shown(tp.profile(lambda: None))) == 2
