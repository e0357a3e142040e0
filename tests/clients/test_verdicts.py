"""What ``python -m tests.clients`` makes of outcomes and of its table."""

from __future__ import annotations

import re
import tomllib

import pytest

from .__main__ import TABLE
from .projects import PROJECTS, SUITE
from .verdicts import Expected, judge, read

TABLED = [Expected(("a.py::A::", "a.py::test_b["), 3, "why"), Expected(("a.py::",), 1, "others")]
OUTCOMES = {
    "a.py::A::test_one": ("failed", "x"),
    "a.py::A::test_two": ("failed", "x"),
    "a.py::A::test_good": ("passed", ""),
    "a.py::test_b[0]": ("failed", "x"),
    "a.py::test_c": ("failed", "y"),
    "b.py::test_d": ("skipped", ""),
}


def test_what_the_table_says_is_no_difference():
    verdict = judge(OUTCOMES, TABLED)
    assert verdict.differences == []
    assert verdict.counts == {"failed": 4, "passed": 1, "skipped": 1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"b.py::test_d": ("failed", "z")}, "not in the table: b.py::test_d: z"),
        (
            {"a.py::A::test_good": ("failed", "z")},
            r"4 tests fail instead of 3: a.py::A::.*\(why\)",
        ),
        ({"a.py::test_b[0]": ("passed", "")}, "2 tests fail instead of 3"),
        ({"a.py::test_c": ("skipped", "")}, "0 tests fail instead of 1: a.py::"),
    ],
)
def test_a_new_failure_and_a_fixed_one_differ(changes, message):
    (difference,) = judge(OUTCOMES | changes, TABLED).differences
    assert re.search(message, difference)


def test_no_tests_are_a_difference():
    assert judge({}, []).differences == ["no tests ran"]


GOOD = {"tests": ["a"], "failing": 1, "reason": "why"}


@pytest.mark.parametrize(
    "changes", [{"tests": []}, {"failing": 0}, {"reason": ""}, {"more": 1}], ids=str
)
def test_incomplete_entries_are_refused(changes):
    assert read([GOOD]) == [Expected(("a",), 1, "why")]
    with pytest.raises(ValueError, match="needs tests"):
        read([GOOD | changes])


def test_the_table_is_complete():
    table = tomllib.loads(TABLE.read_text())
    names = {project.name for project in PROJECTS}
    assert table.keys() == {"versions", "expected", SUITE}
    assert table["versions"].keys() == names
    assert table["expected"].keys() <= names | {SUITE}
    assert all(read(entries) for entries in table["expected"].values())
