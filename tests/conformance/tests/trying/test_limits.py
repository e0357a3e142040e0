"""Backends whose device limits single buffers: what that excuses, and what a report says of it."""

from __future__ import annotations

import pytest
from tests.conformance.tests.reports import sample

from tensorplug_conformance.denominator import Row, entries
from tensorplug_conformance.reporting.rendering.page import page
from tensorplug_conformance.reporting.rendering.summary import summary
from tensorplug_conformance.reporting.report import faults
from tensorplug_conformance.reporting.verification import verify
from tensorplug_conformance.selftest.backends import WrongBackend, engine_with
from tensorplug_conformance.selftest.delegates import Delegate
from tensorplug_conformance.session import Session
from tensorplug_conformance.trying import needs
from tensorplug_conformance.trying.rows import run_row

LIMIT = 4096  # bytes


class Limited(Delegate):
    """Declares a limit, to get rid of large cases."""

    largest_buffer = LIMIT


@pytest.mark.parametrize("least", [needs.LEAST_LIMIT, LIMIT])
def test_a_limit_excuses_larger_arrays_unless_it_is_small(least, monkeypatch):
    monkeypatch.setattr(needs, "LEAST_LIMIT", least)
    wrong = WrongBackend("limits itself", Limited, 1, "figures of memory")
    session = Session(lambda: engine_with(wrong), "cpu")
    try:
        verdict = run_row(session, entries()["Floor"], Row("Floor", "int32", "native"), 0)
    finally:
        session.close()
    assert verdict.status == "pass native"
    assert (verdict.beyond > 0) is (least == LIMIT)
    assert verdict.passed + verdict.beyond == verdict.cases


@pytest.mark.parametrize(("largest", "holds"), [(1 << 27, True), (1 << 20, False), (None, False)])
def test_a_report_says_which_limit_excuses_how_many_cases(largest, holds):
    report = sample()
    report["rows"][0] |= {"passed": 6, "beyond": 3}
    report["totals"]["cases_passed"] -= 3
    if largest is not None:
        report["backend"]["largest_buffer"] = largest
        said = f"{largest:,} bytes at most, it declares: 3 cases need a larger one"
        assert said in page(report)
        assert said in summary(report)
    assert faults(report) == []
    assert ("Abs: no limit of buffers excuses its 3 cases" in verify(report)) is not holds
