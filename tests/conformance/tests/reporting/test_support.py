"""The support page and its badges."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from tests.conformance.tests.reports import row, sample

from tensorplug_conformance.checks import Target
from tensorplug_conformance.cli import main
from tensorplug_conformance.reporting import report
from tensorplug_conformance.reporting.rendering.sections import inserted
from tensorplug_conformance.reporting.rendering.support import support, write_support
from tensorplug_conformance.running.certify import certify

if TYPE_CHECKING:
    from pathlib import Path

UNSUPPORTED = "unsupported dtype"
CELLS = {
    # The rows of a kernel (dtype, mode, status), and the page's text.
    "native 2": [("float32", "native", "pass native"), ("int32", "native", "pass native")],
    "decomposed 1": [
        ("float32", "native", "not claimed"),
        ("float32", "decomposed", "pass decomposed"),
    ],
    "native 1, decomposed 1 ∂": [
        ("float32", "native", "pass native"),
        ("float32", "decomposed", "pass decomposed"),
        ("float32", "gradient", "pass gradient"),
        ("float64", "native", "not claimed"),
        ("float64", "decomposed", "pass decomposed"),
        ("int8", "native", UNSUPPORTED),
    ],
    "**failed**: float32": [
        ("float32", "native", "fail"),
        ("float64", "native", "pass native"),
    ],
    "**failed**: float16, float32": [
        ("float32", "native", "pass native"),
        ("float32", "gradient", "missing"),
        ("float16", "native", "expected fail"),
    ],
    "unsupported": [("string", "native", UNSUPPORTED)],
    "·": [("float32", "gradient", "pass gradient")],
}
PARTIAL_CELLS = {
    "native 1": [("float32", "native", "pass native"), ("int32", "native", "not claimed")],
    "·": [("float32", "native", "not claimed"), ("int8", "native", UNSUPPORTED)],
}


def of(backend: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    content = sample()
    return {**content, "backend": {**content["backend"], "name": backend}, "rows": rows}


def cells(page: str) -> dict[str, list[str]]:
    """Return the matrix by kernel."""
    lines = page.partition("## Kernels")[2].strip().splitlines()
    parts = [[part.strip() for part in line.strip("|").split("|")] for line in lines]
    assert parts[0][0] == "kernel"
    return {name.strip("`"): rest for name, *rest in (parts[0], *parts[2:])}


@pytest.mark.parametrize(("meant", "given"), [*CELLS.items(), *PARTIAL_CELLS.items()])
def test_what_a_cell_says(meant: str, given: list[tuple[str, str, str]]) -> None:
    rows = [row("Kernel", *cell) for cell in given]
    assert cells(support([of("acme", rows)]))["Kernel"] == [meant]


def test_backends_stand_side_by_side() -> None:
    one = of("zeta", [row("Abs", "float32", "native", "pass native")])
    two = of("acme", [row("Neg", "float32", "native", "fail")])
    assert cells(support([one, two])) == {
        "kernel": ["acme", "zeta"],
        "Abs": ["·", "native 1"],
        "Neg": ["**failed**: float32", "·"],
    }


def test_a_line_for_each_backend() -> None:
    content = of("acme", [row("Abs", "float32", "native", "pass native")])
    page = support([{**content, "conformant": True, "partial": False}])
    (line,) = [row for row in page.splitlines() if row.startswith("| ![acme")]
    parts = [part.strip() for part in line.strip("|").split("|")]
    assert parts[0] == "![acme: level 3](badges/acme.svg)"
    assert parts[1:7] == ["acme, tensorplug-acme 1.2", r"Acme \<One\>", "3", "1", "0", "0"]
    assert parts[-1] == "2026-11-01"


def test_the_badges(tmp_path: Path) -> None:
    reports = [
        {**of("good", []), "conformant": True, "level": 2},
        {**of("bad", [row("Abs", "float32", "native", "fail")]), "conformant": False},
    ]
    written = {file.relative_to(tmp_path).as_posix() for file in write_support(reports, tmp_path)}
    assert written == {
        "support.md",
        *(f"badges/{n}.{e}" for n in ("good", "bad") for e in ("svg", "json")),
    }
    shown = json.loads((tmp_path / "badges/good.json").read_text())
    assert shown == {
        "schemaVersion": 1,
        "label": "tensorplug conformance",
        "message": "level 2",
        "color": "2c7a3f",
    }
    assert json.loads((tmp_path / "badges/bad.json").read_text())["color"] == "b3261e"
    assert ET.fromstring((tmp_path / "badges/good.svg").read_text()).tag.endswith("svg")


def test_sections_of_others_are_kept_and_replaced(tmp_path: Path) -> None:
    reports = [of("acme", [row("Abs", "float32", "native", "pass native")])]
    bare = support(reports)
    write_support(reports, tmp_path)
    page = tmp_path / "support.md"
    assert page.read_text() == bare
    one = inserted(bare, "drivers", "## Drivers\n\nold\n")
    both = inserted(one, "clients", "## Clients")
    page.write_text(both)
    write_support(reports, tmp_path)
    assert page.read_text() == both
    headings = [line for line in both.splitlines() if line.startswith("#")]
    assert headings[1:] == ["## Drivers", "## Clients", "## Kernels"]
    again = inserted(both, "drivers", "## Drivers\n\nnew\n")
    assert again == both.replace("old", "new")
    assert cells(again) == cells(bare)
    with pytest.raises(ValueError, match="no line '## Kernels'"):
        inserted("# Another page\n", "drivers", "text")


def test_the_command_takes_whole_reports_that_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = certify(Target("cpu"), 0)
    report.write(content, tmp_path / "cpu")
    assert main(["support", str(tmp_path / "cpu"), "--output", str(tmp_path / "docs")]) == 0
    assert "| cpu, tensorplug-cpu" in (tmp_path / "docs/support.md").read_text()
    shown = json.loads((tmp_path / "docs/badges/cpu.json").read_text())
    assert shown["message"] == "level 0"
    capsys.readouterr()
    report.write({**content, "conformant": False}, tmp_path / "forged")
    vendor = {"conformant": None, "blocked_by": []}
    part = {**content, "partial": True, "conformant": None, "vendor": vendor}
    report.write(part, tmp_path / "part")
    for wrong, fault in (
        (["forged"], "conformant is False"),
        (["part"], "the run is partial"),
        (["cpu", "cpu"], "one report for each backend"),
    ):
        assert main(["support", *(str(tmp_path / name) for name in wrong)]) == 2
        assert fault in capsys.readouterr().out
