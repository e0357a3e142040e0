"""A small report as data, with one row of every relevant status."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tensorplug_conformance import SUITE_VERSION
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.comparing.vendor import bounds
from tensorplug_conformance.denominator import Row, entries, fingerprint
from tensorplug_conformance.reporting import report

NEG_INPUT = {"dtype": "float32", "shape": [3], "elements": ["-0.0", "inf", "nan"]}


def row(kernel: str, dtype: str, mode: str, status: str, **more: Any) -> dict[str, Any]:
    """Return a row of a report; ``more`` replaces entries of a clean one."""
    passed = status.startswith("pass")
    return {
        "kernel": kernel,
        "dtype": dtype,
        "mode": mode,
        "status": status,
        "cases": 9,
        "passed": 9 if passed else 0,
        "declined": 0,
        "unsupported": 0 if passed or status in ("fail", "not claimed") else 9,
        "examples": 0,
        "ulp": 0.5,
        "seconds": 0.125,
        "reason": "",
        "failed": [],
        "failures": [],
        "vendor": status,
        "tolerated": [],
        "pairs": [0, 0],
        **more,
    }


FAILURE = {
    "case": "edges <&>",
    "message": "2 of 3 wrong; first at [0]: got 0.0,\nmust be -0.0 | and so on",
    "attributes": {"alpha": "0.25"},
    "inputs": [NEG_INPUT, None],
    "tolerated": False,
}


def sample() -> dict[str, Any]:
    """Return a report that fulfils the schema and adds up, of a partial run."""
    failed = {"failed": ["edges <&>", "large"], "failures": [FAILURE], "passed": 7}
    rows = [
        row("Abs", "float32", "native", "pass native", ulp=0.0),
        row("Exp", "float64", "native", "pass native", ulp=2.75, seconds=3.5),
        row("Neg", "float32", "native", "fail", **failed),
        row("Neg", "int8", "native", "unsupported dtype"),
        row("Tanh", "float32", "native", "pass native", ulp=1.5),
        row("Tanh", "float32", "decomposed", "pass decomposed"),
        row("Tanh", "float32", "gradient", "pass gradient"),
    ]
    known = entries()
    listed = [Row(row["kernel"], row["dtype"], row["mode"]) for row in rows]
    cases, digest = fingerprint(listed, known, 0)
    return {
        "schema": report.SCHEMA,
        "suite": {
            "version": SUITE_VERSION,
            "tolerances": tolerances().version,
            "vendor": bounds().version,
            "seed": 0,
            "examples": 2,
        },
        "asked_again": {"seed": 7},
        "backend": {
            "name": "acme",
            "distribution": "tensorplug-acme",
            "version": "1.2",
            "device": "Acme <One>",
            "dtypes": ["bool", "float32", "float64", "int32"],
        },
        "tensorplug": "0.1.0",
        "level": 3,
        "partial": True,
        "interrupted": False,
        "profile": "strict",
        "conformant": None,
        "blocked_by": ["1 rows: fail"],
        "vendor": {"conformant": None, "blocked_by": ["1 rows: fail"]},
        "started": "2026-11-01T12:00:00+00:00",
        "seconds": 61.0,
        "environment": {"python": "3.12", "processors": "8"},
        "denominator": {"rows": len(rows), "cases": cases, "sha256": digest},
        "totals": {
            "rows": dict(Counter(row["status"] for row in rows)),
            "checks": {"pass": 1},
            "cases_passed": sum(row["passed"] for row in rows),
        },
        "checks": [
            {"level": 0, "check": "opens", "status": "pass", "message": "", "seconds": 0.5}
        ],
        "rows": rows,
    }


def _third(group: str, test: str, status: str, why: str = "", kernels: int = 1) -> dict[str, Any]:
    return {
        "group": group,
        "test": test,
        "status": status,
        "why": why,
        "kernels": kernels,
        "seconds": 0.25,
    }


EVIDENCE = {
    "name": "thirds",
    "title": "Tests of <others>",
    "about": "They wrote & compared.",
    "versions": {"tensorplug-thirds": "2.0"},
    "tests": [
        _third("node", "<plain>", "pass"),
        _third("node", "of the host", "pass", kernels=0),
        _third("node", "drawn", "known", "random"),
        _third("real", "without", "unsupported", "no rule"),
        _third("real", "deep", "fail", "<wrong>"),
    ],
}
"""The tests of others in a report, one of every status."""
