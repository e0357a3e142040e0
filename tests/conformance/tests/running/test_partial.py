"""Partial certificates: of the kernels that a backend registers, and of no level."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from rich.console import Console
from tests.conformance.tests.reports import row, sample

from tensorplug.contract.entries import kernel_entry
from tensorplug.contract.owner import Owner
from tensorplug.plugin import KernelRefusedError, specs
from tensorplug.plugins.assembly import build_engine
from tensorplug_conformance.arguments import make_parser
from tensorplug_conformance.checks import Target, checks
from tensorplug_conformance.denominator import NATIVE, Selection, entries
from tensorplug_conformance.reporting import terminal
from tensorplug_conformance.reporting.rendering.badge import badge, colour, standing
from tensorplug_conformance.reporting.rendering.page import page
from tensorplug_conformance.reporting.rendering.summary import summary
from tensorplug_conformance.reporting.rendering.support import support
from tensorplug_conformance.reporting.report import faults
from tensorplug_conformance.reporting.verification import verify
from tensorplug_conformance.running.certify import items_of
from tensorplug_conformance.running.worker import Worker

if TYPE_CHECKING:
    from tensorplug.engine.engine import Engine
    from tensorplug.plugin import TensorType

KEPT = ("Neg", "Exp", "Abs", "Log")


def few() -> Engine:
    """Return an engine whose backend has four kernels: right, wrong, in one dtype, declining."""
    engine = build_engine()
    device = engine.open("minimal")
    registered = engine.registry.state.kernels
    for kernel, backend in list(registered):
        if backend == "minimal" and kernel not in KEPT:
            engine.registry.remove_kernel(kernel, backend)

    def own(function: Any) -> Any:
        backend = device.backend
        return lambda x: backend.from_host(np.asarray(function(backend.to_host(x))))

    def declining(x: TensorType) -> Any:
        if x.shape and x.shape[-1] == 7:
            raise KernelRefusedError("no seven")
        return own(np.log)

    own_kernels = [
        kernel_entry(specs.EXP, own(lambda x: np.exp(x) + 1)),
        kernel_entry(specs.ABS, own(np.abs), dtypes=["float64"]),
        kernel_entry(specs.LOG, declining, prepares=True),
    ]
    added = [("minimal", entry) for entry in own_kernels]
    engine.registry.add(Owner("acme"), kernels=added, override=True)
    return engine


@pytest.fixture
def worker() -> Worker:
    return Worker(Target("minimal", f"{__name__}:few", falls_back=True), 0)


ROWS = [  # a kernel, a dtype, the status of its native row, a part of what it says
    ("Neg", "float64", "pass native", ""),
    ("Exp", "float64", "fail", "ulp"),  # registered and wrong: not left out
    ("Log", "float64", "fail", "a primitive kernel must be native"),  # as are calls
    ("Abs", "float64", "pass native", ""),
    ("Abs", "int32", "not claimed", ""),
    ("Add", "float32", "not claimed", ""),
    ("Softmax", "float32", "not claimed", ""),
]


@pytest.mark.filterwarnings("ignore:(divide|invalid|overflow):RuntimeWarning")
@pytest.mark.parametrize(("kernel", "dtype", "status", "says"), ROWS)
def test_what_is_registered_is_judged(
    kernel: str, dtype: str, status: str, says: str, worker: Worker
) -> None:
    verdict = worker.row(kernel, dtype, "native")
    assert verdict.status == status
    assert says in " ".join(each.message for each in verdict.failures)


@pytest.mark.parametrize("level", range(NATIVE + 1))
def test_all_checks_and_all_native_rows_are_asked(level: int) -> None:
    items, rows = items_of(level, entries(), Selection(registered=True))
    whole, every = items_of(level, entries(), Selection())
    assert [item for item in items if item[0] == "check"] == [
        item for item in whole if item[0] == "check"
    ]
    assert rows == [row for row in every if row.mode == "native"]


def test_checks_of_memory_pass_without_kernels(worker: Worker) -> None:
    assert worker.check(1, "isolation").status == "pass"
    on_device = worker.check(1, "kernels run on the device")
    assert on_device.status == "not measured"
    assert {check.id for check in checks(1)} >= {"isolation", "kernels run on the device"}


def test_a_level_is_no_part_of_it() -> None:
    with pytest.raises(SystemExit):
        make_parser().parse_args(["run", "--backend", "acme", "--partial", "--level", "2"])


PASSED = [("Neg", "pass native"), ("Add", "pass widened"), ("Conv2D", "pass native")]
REPORTS: dict[str, tuple[list[tuple[str, str]], dict[str, Any], str, str]] = {
    "passes": (
        [*PASSED, ("Exp", "not claimed")],
        {},
        "partial (2 of 41 kernels and 1 more)",
        "partial: certified for 2 of 41 kernels and 1 more, strictly; not conformant",
    ),
    "primitives alone": (
        PASSED[:2],
        {},
        "partial (2 of 41 kernels)",
        "partial: certified for 2 of 41 kernels, strictly; not conformant",
    ),
    "fails": (
        [*PASSED, ("Exp", "fail")],
        {"blocked_by": ["1 rows: fail"], "vendor": ["1 rows: fail"]},
        "partial: 1 rows fail",
        "partial, not certified: 1 rows: fail",
    ),
    "a check fails": (
        PASSED,
        {"blocked_by": ["check 'x' failed"], "vendor": ["check 'x' failed"]},
        "partial: not certified",
        "partial, not certified: check 'x' failed",
    ),
    "by a vendor's bounds": (
        PASSED[:2],
        {"blocked_by": ["1 rows: fail"]},
        "partial (2 of 41 kernels, vendor)",
        (
            "partial: certified for 2 of 41 kernels within a vendor's bounds, not strictly: "
            "1 rows: fail; not conformant"
        ),
    ),
}


def _report(which: str) -> dict[str, Any]:
    rows, judged, _, _ = REPORTS[which]
    listed = [row(kernel, "float32", "native", status) for kernel, status in rows]
    vendor = {"conformant": None, "blocked_by": judged.get("vendor", [])}
    blocked = judged.get("blocked_by", [])
    content = {**sample(), "registered": True, "rows": listed}
    counts = dict(Counter(status for _, status in rows))
    totals = {**content["totals"], "rows": counts}
    return {**content, "blocked_by": blocked, "vendor": vendor, "totals": totals}


@pytest.mark.parametrize("which", REPORTS)
def test_what_reports_say(which: str) -> None:
    report, words = _report(which), REPORTS[which]
    assert faults(report) == []
    assert standing(report) == words[2]
    assert words[2] in badge(report)
    console = Console(record=True, width=200)
    terminal.show(report, console)
    printed = console.export_text()
    assert words[3] in printed
    whole = [page(report), summary(report), support([report])]
    assert all(words[2] in text for text in whole)
    for text in (printed, *whole):
        assert "onformant at level" not in text
    line = next(line for line in support([report]).splitlines() if "acme, tensorplug" in line)
    assert line.split(" | ")[3] == "partial"
    assert colour(report) != colour({**sample(), "conformant": True}), "not that of a level"


def test_without_a_row_it_does_not_hold() -> None:
    """What fails cannot be left out: the report has all rows, and says of each what it is."""
    report = _report("passes")
    found = " ".join(verify(report))
    assert "rows are missing" in found
    assert "checks are missing" in found
    assert "rows are missing" not in " ".join(verify(sample()))  # of a run that certifies nothing


def test_a_failure_cannot_be_kept_back() -> None:
    report = {
        **_report("fails"),
        "blocked_by": [],
        "vendor": {"conformant": None, "blocked_by": []},
    }
    assert "strict: the report does not say: 1 rows: fail" in verify(report)
