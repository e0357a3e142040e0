"""The two profiles: strict, and a vendor's published bounds."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from rich.console import Console
from tests.conformance.tests.reports import FAILURE, row, sample

from tensorplug.plugin import TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance import Case, Published, cli
from tensorplug_conformance.checks import Target
from tensorplug_conformance.comparing import vendor
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.reporting import report
from tensorplug_conformance.reporting.differences import differences
from tensorplug_conformance.reporting.expectations import Expectation, apply
from tensorplug_conformance.reporting.report import blocked
from tensorplug_conformance.reporting.terminal import as_expected, show
from tensorplug_conformance.reporting.verification import verify

if TYPE_CHECKING:
    from pathlib import Path

KNOWN = entries()
_FAR = Published({"float32": 9.5}, {"float32": 2.2e-6}, absolute_from=8.0)
_GAP = Published({"float32": 40.0}, gap=(-4.0, -2.0))
KNOWN |= {
    name: replace(KNOWN[name], published=published)
    for name, published in (("Sin", _FAR), ("Cos", _GAP))
}
TINY = np.finfo(np.float32).tiny


@pytest.mark.parametrize(
    ("kernel", "dtype", "allowed"),
    [
        ("Erfc", dt.float32, 16),  # OpenCL 16, CUDA 4
        ("Cosh", dt.float64, 4),
        ("Sin", dt.float32, 9.5),  # what the cases say
        ("Sin", dt.float64, 4),
        ("Sqrt", dt.float64, 1),
        ("Log1p", dt.float32, 6),  # the strict line is larger than both tables
        ("Erfc", dt.float16, 8),  # only the strict line
        ("Add", dt.float32, 0.5),
    ],
)
def test_the_largest_published_bound_counts(kernel: str, dtype: dt.DType, allowed: float) -> None:
    assert vendor.bounds().of(KNOWN[kernel], dtype) == allowed


def test_no_bound_is_below_the_strict_one_and_every_line_is_a_kernels() -> None:
    bounds = vendor.bounds()
    assert set(bounds.ulp) <= set(KNOWN)
    for name, line in bounds.ulp.items():
        for dtype in map(dt.of, line):
            assert bounds.of(KNOWN[name], dtype) >= tolerances().of(KNOWN[name], dtype)


# What one element may be: kernel, input, result, right answer, flushed dtypes, whether allowed.
ELEMENTS: list[tuple[str, list[float], float, float, set[dt.DType], bool]] = [
    ("Neg", [TINY / 2], 0.0, -TINY / 2, {dt.float32}, True),
    ("Neg", [TINY / 2], 0.0, -TINY / 2, set(), False),
    ("Neg", [TINY / 2], 0.0, -TINY / 2, {dt.float16}, False),
    ("Neg", [TINY * 4], 0.0, -TINY * 4, {dt.float32}, False),
    ("Reciprocal", [TINY / 2], float("inf"), 2 / TINY, {dt.float32}, True),
    ("Reciprocal", [TINY / 2], float("-inf"), 2 / TINY, {dt.float32}, True),  # of either zero
    ("Reciprocal", [TINY * 2], float("inf"), 0.5 / TINY, {dt.float32}, False),
    ("Sin", [9.0], 0.41211849 + 2e-6, 0.41211849, set(), True),
    ("Sin", [9.0], 0.41211849 + 5e-6, 0.41211849, set(), False),
    ("Sin", [2.0], 0.90929743 + 2e-6, 0.90929743, set(), False),
    ("Cos", [-2.5], -0.80114362 * (1 + 2**-19), -0.80114362, set(), False),  # in the gap
    ("Cos", [2.5], -0.80114362 * (1 + 2**-19), -0.80114362, set(), True),
]


@pytest.mark.parametrize(("kernel", "x", "result", "right", "zeros", "allowed"), ELEMENTS)
def test_what_a_vendors_element_may_be(
    kernel: str, x: list[float], result: float, right: float, zeros: set[dt.DType], allowed: bool
) -> None:
    case = Case("one", (np.array(x, np.float32),))
    excused = vendor.allows(
        KNOWN[kernel],
        case,
        0,
        np.array([result], np.float32),
        TensorType(dt.float32, (1,)),
        np.array([right], np.longdouble),
        dt.float32,
        frozenset(zeros),
    )
    assert excused is allowed


@pytest.mark.parametrize(
    "result", [np.zeros(2, np.float32), np.zeros(1, np.float64)], ids=["shape", "dtype"]
)
def test_shape_and_dtype_are_never_tolerated(result: np.ndarray[Any, Any]) -> None:
    case = Case("one", (np.array([TINY / 2], np.float32),))
    type_ = TensorType(dt.float32, (1,))
    right = np.array([-TINY / 2], np.longdouble)
    zeros = frozenset({dt.float32})
    assert not vendor.allows(KNOWN["Neg"], case, 0, result, type_, right, dt.float32, zeros)


def _tolerated(**more: Any) -> dict[str, Any]:
    failures = [{**FAILURE, "case": "edges", "tolerated": True}]
    changes = {"failed": ["edges"], "tolerated": ["edges"], "failures": failures, "passed": 8}
    return row("Sqrt", "float64", "native", "fail", **{**changes, "vendor": "pass native", **more})


def test_a_report_is_judged_by_both_profiles() -> None:
    rows = [row("Abs", "float32", "native", "pass native"), _tolerated()]
    assert blocked([], rows, 2) == ["1 rows: fail"]
    assert blocked([], rows, 2, profile="vendor") == []
    check = {"check": "opens", "status": "fail"}
    assert blocked([check], rows, 2, profile="vendor") == ["check 'opens' failed"]


def test_the_terminal_lists_the_failures_that_decide() -> None:
    wrong = {**FAILURE, "case": "far", "message": "beyond any bound", "tolerated": False}
    both = _tolerated()["failures"] + [wrong]
    content = sample()
    content["rows"] = [
        {**_tolerated(), "kernel": "Erfc"},
        _tolerated(failed=["edges", "far"], failures=both, passed=7, vendor="fail"),
    ]
    texts = {}
    for profile in ("strict", "vendor"):
        content["profile"] = profile
        printed = io.StringIO()
        show(content, Console(file=printed, width=200))
        texts[profile] = [
            line for line in printed.getvalue().splitlines() if line.startswith("fail ")
        ]
    assert ["Erfc" in line for line in texts["strict"]] == [True, False]
    (line,) = texts["vendor"]
    assert "Sqrt float64 native, far: beyond any bound" in line


@pytest.mark.parametrize(
    "forged",
    [
        {"tolerated": []},
        {"tolerated": ["edges", "another"]},
        {"failed": ["edges", "large"], "passed": 7},
    ],
)
def test_a_vendors_pass_must_follow_from_the_cases(forged: dict[str, Any]) -> None:
    content = sample()
    content["rows"] = [_tolerated(**forged)]
    assert any("by a vendor's bounds" in fault for fault in verify(content))
    content["rows"] = [_tolerated()]
    assert not any("by a vendor's bounds" in fault for fault in verify(content))


@pytest.mark.parametrize(
    ("failed", "tolerated", "expected", "status", "by_vendor"),
    [
        (["a"], ["a"], ["a"], "expected fail", "pass native"),
        (["a", "b"], ["a"], ["b"], "fail", "expected fail"),
        (["a", "b"], ["a"], ["a"], "fail", "fail"),
        (["a", "b"], ["a"], [], "expected fail", "expected fail"),
    ],
)
def test_expectations_count_in_each_profile(
    failed: list[str],
    tolerated: list[str],
    expected: list[str],
    status: str,
    by_vendor: str,
) -> None:
    passes = "pass native" if failed == tolerated else "fail"
    failing = row(
        "Sqrt", "float64", "native", "fail", failed=failed, tolerated=tolerated, vendor=passes
    )
    apply(
        [failing], [Expectation("Sqrt", "the driver's", cases=tuple(expected))], date(2026, 11, 23)
    )
    assert (failing["status"], failing["vendor"]) == (status, by_vendor)


@pytest.mark.parametrize(
    ("strict", "lenient", "said"),
    [
        ([], [], "conformant at level 3, strictly"),
        (["1 rows: fail"], [], "level 3 within a vendor's bounds, not strictly: 1"),
        (["2 rows: fail"], ["1 rows: fail"], "2 rows: fail (within a vendor's bounds: 1 rows"),
    ],
)
def test_the_last_line_says_both_verdicts(
    strict: list[str], lenient: list[str], said: str
) -> None:
    judged = {"conformant": not lenient, "blocked_by": lenient}
    content = {**sample(), "partial": False, "vendor": judged}
    file = io.StringIO()
    show(
        {**content, "conformant": not strict, "blocked_by": strict}, Console(file=file, width=200)
    )
    assert said in file.getvalue().splitlines()[-1]


@pytest.mark.parametrize(("profile", "expected"), [("strict", False), ("vendor", True)])
def test_the_profile_decides_what_is_expected(profile: str, expected: bool) -> None:
    judged = {"conformant": False, "blocked_by": ["2 rows: expected fail"]}
    content = {"profile": profile, "partial": False, "blocked_by": ["1 rows: fail"]}
    assert as_expected({**content, "vendor": judged}) is expected


@pytest.mark.parametrize(
    ("before", "after", "worse", "better"),
    [
        ("pass native", "fail", ["pass native within a vendor's bounds"], []),
        ("fail", "pass native", [], ["fail"]),
        ("pass native", "pass native", [], []),
    ],
)
def test_what_changes_within_a_vendors_bounds_is_a_change(
    before: str, after: str, worse: list[str], better: list[str]
) -> None:
    old, new = ({**sample(), "rows": [_tolerated(vendor=status)]} for status in (before, after))
    changes = differences(old, new)
    assert [was for _, was, _ in changes.worse] == worse
    assert [was for _, was, _ in changes.better] == better
    assert changes.other == []


@pytest.mark.parametrize(("profile", "code"), [("strict", 1), ("vendor", 0)])
def test_the_profile_decides_the_exit_code(
    profile: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    factory = "tensorplug_conformance.selftest.vendors:rounds_roots"
    monkeypatch.setattr(cli, "Target", lambda name, **more: Target(name, factory, **more))
    run = ["run", "--backend", "cpu", "--level", "2", "--kernels", "Sqrt", "--jobs", "1"]
    arguments = ["--dtypes", "float64", "--report", str(tmp_path), "--profile", profile]
    assert cli.main([*run, *arguments]) == code
    content = report.read(tmp_path)
    assert (content["profile"], content["blocked_by"]) == (
        profile,
        ["1 rows: fail", "nothing passed"],
    )
    assert content["vendor"]["blocked_by"] == []
    (only,) = content["rows"]
    assert (only["status"], only["vendor"]) == ("fail", "pass native")
    assert only["failed"] == only["tolerated"]
    assert all(failure["tolerated"] for failure in only["failures"])
    assert verify(content) == []


def test_a_gradient_is_tolerated_where_its_kernel_is() -> None:
    case = Case("infinite", (np.array([-np.inf, 1.0], np.float32),))
    gradient, excess = np.array([np.nan, np.nan], np.float32), np.array([np.nan, np.nan])
    allowed = vendor.excess_allowed(KNOWN["Silu"], case, gradient, excess, frozenset())
    assert allowed.tolist() == [True, False]
    beyond = replace(case, inputs=(np.array([9.0, 9.0], np.float32),))
    excess = np.array([1e-6, 3e-6])
    allowed = vendor.excess_allowed(KNOWN["Sin"], beyond, gradient, excess, frozenset())
    assert allowed.tolist() == [True, False]


@pytest.mark.parametrize(
    ("strict", "lenient", "said"),
    [
        ([], [], "a partial run certifies nothing: nothing failed"),
        (["2 rows: fail"], ["2 rows: fail"], "certifies nothing: 2 rows: fail"),
        (
            ["2 rows: fail"],
            ["1 rows: fail"],
            "2 rows: fail (within a vendor's bounds: 1 rows: fail)",
        ),
        (["2 rows: fail"], [], "2 rows: fail (within a vendor's bounds: nothing failed)"),
    ],
)
def test_a_partial_run_says_what_failed_in_both_profiles(
    strict: list[str], lenient: list[str], said: str
) -> None:
    judged = {"conformant": None, "blocked_by": lenient}
    content = {**sample(), "partial": True, "conformant": None, "vendor": judged}
    file = io.StringIO()
    show({**content, "blocked_by": strict}, Console(file=file, width=40))  # of a log: not cut
    assert file.getvalue().splitlines()[-1].endswith(said)
