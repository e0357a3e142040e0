"""Each finding is complete, its value is not the right one, and the library still gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mpmath
import pytest
from tests.referee.findings import KINDS, PAGE, START, libraries, shown, tables

from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tests.referee.findings import Finding, Library

FINDINGS = [(library, each) for library in libraries() for each in library.findings]
IDS = [f"{library.distribution}-{each.kernel}-{each.call[:40]}" for library, each in FINDINGS]


@pytest.mark.parametrize(("library", "finding"), FINDINGS, ids=IDS)
def test_finding_is_complete(library: Library, finding: Finding) -> None:
    assert library.version
    assert finding.kind in KINDS
    assert finding.call
    assert finding.what
    assert [dt.of(name) for name in finding.dtypes]
    assert finding.known or finding.kind != "documented"


@pytest.mark.parametrize(("library", "finding"), FINDINGS, ids=IDS)
def test_value_is_not_the_right_one(library: Library, finding: Finding) -> None:
    right = finding.value
    if finding.kind == "digits":
        assert isinstance(right, mpmath.mpf)
        assert finding.ulp > 0.5  # half an ulp is what rounding costs
    else:
        assert finding.got != shown(right)


@pytest.mark.parametrize(("library", "finding"), FINDINGS, ids=IDS)
def test_library_gives_it(library: Library, finding: Finding) -> None:
    if not library.here:
        pytest.skip(f"needs {library.distribution} {library.version}")
    assert library.repeat(finding) == finding.got


def test_page_has_the_findings() -> None:
    assert PAGE.read_text(encoding="utf-8").partition(START)[2] == f"\n{tables()}"
