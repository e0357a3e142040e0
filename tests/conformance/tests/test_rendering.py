"""The forms of a report: the page, the summary, the badge, JUnit's XML."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from tensorplug_conformance.rendering import FORMS, render
from tensorplug_conformance.rendering.badge import badge, standing
from tensorplug_conformance.rendering.junit import junit
from tensorplug_conformance.rendering.page import page
from tensorplug_conformance.rendering.summary import summary

from .reports import sample

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def judged(conformant: bool | None, **rows: int) -> dict[str, Any]:
    return {
        "backend": {"name": "acme"},
        "level": 2,
        "conformant": conformant,
        "totals": {"rows": {name.replace("_", " "): count for name, count in rows.items()}},
    }


@pytest.mark.parametrize(
    ("report", "text", "colour"),
    [
        (judged(True, pass_native=3), "level 2", "#2c7a3f"),
        (judged(False, fail=2, missing=1, pass_native=9), "level 2: 3 rows fail", "#b3261e"),
        (judged(False, expected_fail=4), "level 2: 4 rows fail", "#b3261e"),
        (judged(False), "not conformant", "#b3261e"),
        (judged(None, pass_native=1), "partial run", "#5f6368"),
    ],
)
def test_the_badge(report: dict[str, Any], text: str, colour: str) -> None:
    assert standing(report) == text
    image = ET.fromstring(badge(report))
    shown = [node.text for node in image.iter("{http://www.w3.org/2000/svg}text")]
    assert shown == ["tensorplug conformance", text]
    assert colour in badge(report)


@pytest.mark.parametrize(
    ("declined", "title"),
    [
        (0, "native: pass native (9 of 9 cases)"),
        (2, "native: pass native (7 of 9 cases, 2 declined)"),
    ],
)
def test_the_page_says_how_many_cases_a_kernel_declined(declined: int, title: str) -> None:
    report = sample()
    (exp,) = (row for row in report["rows"] if row["kernel"] == "Exp")
    exp.update(declined=declined, passed=9 - declined)
    assert f'title="{title}"' in page(report)


def test_junit() -> None:
    suite = ET.fromstring(junit(sample()).partition("\n")[2])
    counts = {name: suite.get(name) for name in ("tests", "failures", "skipped")}
    assert counts == {"tests": "8", "failures": "1", "skipped": "1"}
    (failure,) = suite.iter("failure")
    assert failure.get("message") == "fail: edges <&>: 2 of 3 wrong; first at [0]: got 0.0,"
    assert failure.text is not None
    assert failure.text.endswith("must be -0.0 | and so on")


def test_junit_holds_what_xml_cannot() -> None:
    found = sample()
    found["rows"][2]["failures"][0] = {**found["rows"][2]["failures"][0], "message": "\x00\x1b"}
    ET.fromstring(junit(found).partition("\n")[2])


def test_the_summary() -> None:
    lines = summary(sample()).splitlines()
    assert lines[0] == "# Conformance of acme: partial run"
    assert "| native | 3 | 1 |  |  |  | 1 |  |" in lines
    row = next(line for line in lines if line.startswith("| Neg float32 native"))
    assert row.endswith(r"got 0.0, must be -0.0 \| and so on |")


def test_every_form_is_written(tmp_path: Path) -> None:
    paths = render(sample(), tmp_path)
    assert sorted(path.name for path in paths) == sorted(FORMS)
    assert all(path.stat().st_size for path in paths)


def test_the_page_is_self_contained_and_escapes() -> None:
    text = page(sample())
    assert "Acme &lt;One&gt;" in text
    assert "edges &lt;&amp;&gt;" in text
    assert "edges <&>" not in text
    assert "src=" not in text
    assert all(address not in text for address in ("https://", 'href="http'))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium here")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def shown(browser: Any, tmp_path: Path) -> Iterator[Any]:
    (tmp_path / "report.html").write_text(page(sample()), "utf-8")
    view = browser.new_page(viewport={"width": 390, "height": 844})
    said: list[str] = []
    view.on("console", lambda message: said.append(message.text))
    view.on("pageerror", lambda error: said.append(str(error)))
    view.goto((tmp_path / "report.html").as_uri())
    yield view
    assert said == []
    view.close()


def names(view: Any) -> list[str]:
    rows = view.locator("#matrix tbody tr:visible th")
    return [content.strip() for content in rows.all_text_contents()]


def test_the_page_sorts_and_filters(shown: Any) -> None:
    assert names(shown) == ["Abs", "Exp", "Neg", "Tanh"]
    shown.locator("#matrix thead button").first.click()
    assert names(shown) == ["Tanh", "Neg", "Exp", "Abs"]
    shown.locator("#filter").fill("e")
    assert names(shown) == ["Neg", "Exp"]
    assert shown.locator("#shown").inner_text() == "2 kernels"
    shown.locator("#only-failed").check()
    assert names(shown) == ["Neg"]


def test_the_page_sorts_numbers_as_numbers(shown: Any) -> None:
    button = shown.locator("#ulps thead button").nth(1)
    button.click()
    button.click()
    cells = shown.locator("#ulps tbody td:nth-child(3)").all_text_contents()
    assert [float(cell) for cell in cells] == [0.5, 1.5, 2.75]


def test_the_page_fits_a_phone(shown: Any) -> None:
    width = shown.evaluate("document.documentElement.scrollWidth")
    assert width <= 390  # tables scroll in boxes of their own


def test_a_failure_opens_to_its_script(shown: Any) -> None:
    shown.locator("details.failure summary").click()
    text = shown.locator("details.failure pre").inner_text()
    assert "np.array([-0.0, inf, nan], 'float32').reshape((3,))" in text
