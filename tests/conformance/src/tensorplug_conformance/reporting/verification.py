"""Whether a report is consistent: its schema, its arithmetic, its cases, its judgement."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tensorplug_conformance import SUITE_VERSION, evidence
from tensorplug_conformance.checks import checks
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.comparing.vendor import PROFILES, bounds
from tensorplug_conformance.denominator import Row, Selection, entries, fingerprint, rows
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.reporting import report
from tensorplug_conformance.trying.needs import LEAST_LIMIT
from tensorplug_conformance.verdicts import PASSED

if TYPE_CHECKING:
    from collections.abc import Mapping


def verify(content: Any) -> list[str]:
    """Return what is wrong with a report; nothing if it is consistent.

    A consistent report fulfils the schema, was made by this version of the suite, counts what
    this suite counts at its level, adds up, and judges as its rows and checks require. Only
    another run of the suite can tell whether the numbers were really measured.
    """
    broken = [f"schema: {fault}" for fault in report.faults(content)]
    if not broken and content["interrupted"]:
        broken = ["the run was interrupted"]
    return broken or [
        *_versions(content),
        *_denominator(content),
        *_checks(content),
        *_others(content),
        *_totals(content),
        *_judgement(content),
    ]


def _versions(content: Mapping[str, Any]) -> list[str]:
    suite = content["suite"]
    own = {
        "version": SUITE_VERSION,
        "tolerances": tolerances().version,
        "vendor": bounds().version,
    }
    return [
        f"the report has {name} {suite[name]}, this suite has {value}"
        for name, value in own.items()
        if suite[name] != value
    ]


def _denominator(content: Mapping[str, Any]) -> list[str]:
    """Compare the rows with those that a whole run has, and the hash with that of the cases."""
    known = entries(extension_tables())
    listed = [Row(row["kernel"], row["dtype"], row["mode"]) for row in content["rows"]]
    faults = [f"two rows for {row}" for row, count in Counter(listed).items() if count > 1]
    foreign = sorted({row.kernel for row in listed} - set(known))
    if foreign:
        return [*faults, f"no cases here for {', '.join(foreign)}: is an extension missing?"]
    registered = content.get("registered", False)
    if registered or not content["partial"]:
        takes = Selection(registered=registered).takes
        levels = range(content["level"] + 1)
        whole = [row for level in levels for row in rows(level, known) if takes(row)]
        missing = set(whole) - set(listed)
        if missing:
            some = ", ".join(f"{row.kernel} {row.dtype} {row.mode}" for row in sorted(missing)[:3])
            faults.append(f"{len(missing)} rows are missing, such as {some}")
    cases, digest = fingerprint(listed, known, content["suite"]["seed"])
    stated = content["denominator"]
    for name, value in (("rows", len(listed)), ("cases", cases), ("sha256", digest)):
        if stated[name] != value:
            faults.append(f"denominator: {name} is {stated[name]}, but the rows make {value}")
    return faults


def _checks(content: Mapping[str, Any]) -> list[str]:
    """Compare the checks with those that a whole run has."""
    listed = Counter((check["level"], check["check"]) for check in content["checks"])
    faults = [f"two verdicts on check {name!r}" for (_, name), n in listed.items() if n > 1]
    if content["partial"] and not content.get("registered"):
        return faults
    levels = range(content["level"] + 1)
    whole = {(check.level, check.id) for level in levels for check in checks(level)}
    missing = sorted(whole - listed.keys())
    if missing:
        some = ", ".join(f"{name!r} of level {level}" for level, name in missing[:3])
        faults.append(f"{len(missing)} checks are missing, such as {some}")
    return faults


def _others(content: Mapping[str, Any]) -> list[str]:
    """Compare the tests of others with those of the collections that are installed here.

    Without the same versions nothing can be compared but the names with one another.
    """
    faults = []
    for one in content.get("evidence", ()):
        name = one["name"]
        listed = Counter((test["group"], test["test"]) for test in one["tests"])
        faults += [f"{name}: two results of {test}" for (_, test), n in listed.items() if n > 1]
        try:
            same = evidence.described(name)["versions"] == one["versions"]
        except evidence.EvidenceError:
            same = False
        if same:
            whole = {(group, test) for _, _, group, test in evidence.items_of(name)}
            for what, tests in (("lacks", whole - listed.keys()), ("adds", listed.keys() - whole)):
                some = ", ".join(test for _, test in sorted(tests)[:3])
                faults += [f"{name}: the report {what} {len(tests)} tests, such as {some}"] * bool(
                    tests
                )
    return faults


def _totals(content: Mapping[str, Any]) -> list[str]:
    rows_, totals = content["rows"], content["totals"]
    counted = {
        "rows": dict(Counter(row["status"] for row in rows_)),
        "checks": dict(Counter(check["status"] for check in content["checks"])),
        "cases_passed": sum(row["passed"] for row in rows_),
    }
    faults = [
        f"totals: {name} is {totals[name]}, but must be {value}"
        for name, value in counted.items()
        if totals[name] != value
    ]
    for row in rows_:
        if row["examples"] > content["suite"]["examples"]:
            faults.append(f"{row['kernel']}: {row['examples']} examples, more than were requested")
        parts = row["passed"] + row["declined"] + row["unsupported"] + len(row["failed"])
        beyond = row.get("beyond", 0)
        if beyond and content["backend"].get("largest_buffer", 0) < LEAST_LIMIT:
            faults.append(f"{row['kernel']}: no limit of buffers excuses its {beyond} cases")
        parts += beyond
        passes = row["status"] in PASSED
        if _is_too_lenient(row):
            what = f"{row['kernel']} {row['dtype']} {row['mode']}"
            faults.append(
                f"{what}: {row['vendor']} by a vendor's bounds, but its cases do not say so"
            )
        at_most = row["cases"] + min(row["examples"], 1)  # a failing example is named
        if parts > at_most or (passes and (row["failed"] or not row["passed"])):
            what = f"{row['kernel']} {row['dtype']} {row['mode']}"
            faults.append(f"{what}: {row['status']}, but its cases do not add up to that")
    return faults


def _is_too_lenient(row: Mapping[str, Any]) -> bool:
    """Return whether the cases contradict the status within a vendor's bounds."""
    failed, tolerated = set(row["failed"]), set(row["tolerated"])
    if tolerated - failed or (row["vendor"] in PASSED and failed - tolerated):
        return True
    return not tolerated and row["vendor"] != row["status"]


def _judgement(content: Mapping[str, Any]) -> list[str]:
    faults = []
    for profile in PROFILES:
        reasons = report.blocked(
            content["checks"], content["rows"], content["level"], profile=profile
        )
        stated = report.verdict(content, profile)
        untold = [reason for reason in reasons if reason not in stated["blocked_by"]]
        faults += [f"{profile}: the report does not say: {reason}" for reason in untold]
        conformant = None if content["partial"] else not stated["blocked_by"]
        if stated["conformant"] is not conformant:
            faults.append(
                f"{profile}: conformant is {stated['conformant']}, but its rows say {conformant}"
            )
    return faults
