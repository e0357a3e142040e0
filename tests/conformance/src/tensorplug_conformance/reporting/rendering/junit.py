"""JUnit's XML, which CI services show: a test case per check and per row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from tensorplug_conformance.reporting.quoting import printable
from tensorplug_conformance.verdicts import BLOCKING, PASSED

if TYPE_CHECKING:
    from collections.abc import Mapping


def junit(report: Mapping[str, Any]) -> str:
    """Return one test suite; rows that neither passed nor failed count as skipped."""
    name = f"tensorplug-conformance {report['backend']['name']} level {report['level']}"
    suite = ET.Element("testsuite", name=printable(name), time=f"{report['seconds']:.3f}")
    for check in report["checks"]:
        place = f"level {check['level']}"
        case = _case(suite, place, check["check"], check["seconds"])
        if check["status"] == "fail":
            _element(case, "failure", check["message"], check["message"])
        elif check["status"] != "pass":
            _element(case, "skipped", check["message"] or check["status"])
    for row in report["rows"]:
        _row(_case(suite, row["kernel"], f"{row['dtype']} {row['mode']}", row["seconds"]), row)
    counts = {"tests": "testcase", "failures": ".//failure", "skipped": ".//skipped"}
    for attribute, path in counts.items():
        suite.set(attribute, str(len(suite.findall(path))))
    ET.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suite, "unicode") + "\n"


def _case(suite: ET.Element, place: str, name: str, seconds: float) -> ET.Element:
    names = {"classname": printable(place), "name": printable(name)}
    return ET.SubElement(suite, "testcase", names, time=f"{seconds:.3f}")


def _row(case: ET.Element, row: Mapping[str, Any]) -> None:
    if row["status"] in BLOCKING:
        lines = [f"{failure['case']}: {failure['message']}" for failure in row["failures"]]
        text = "\n".join(lines) or row["reason"]
        _element(case, "failure", f"{row['status']}: {text.partition(chr(10))[0]}", text)
    elif row["status"] not in PASSED:
        _element(case, "skipped", row["reason"] or row["status"])


def _element(case: ET.Element, tag: str, message: str, text: str = "") -> None:
    ET.SubElement(case, tag, message=printable(message)).text = printable(text)
