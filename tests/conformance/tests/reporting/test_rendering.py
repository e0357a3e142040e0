"""The forms of a report: the page, the summary, the badge, JUnit's XML."""

from __future__ import annotations

import re
import shutil
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from tests.conformance.tests.reports import EVIDENCE, sample
from tests.conformance.tests.test_performance import times

from tensorplug_conformance.reporting.rendering import FORMS, render
from tensorplug_conformance.reporting.rendering.badge import badge, standing
from tensorplug_conformance.reporting.rendering.junit import junit
from tensorplug_conformance.reporting.rendering.page import page
from tensorplug_conformance.reporting.rendering.summary import summary
from tensorplug_conformance.reporting.report import faults

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def judged(conformant: bool | None, *, vendor: bool | None = False, **rows: int) -> dict[str, Any]:
    return {
        "backend": {"name": "acme"},
        "level": 2,
        "conformant": conformant,
        "vendor": {"conformant": vendor},
        "totals": {"rows": {name.replace("_", " "): count for name, count in rows.items()}},
    }


@pytest.mark.parametrize(
    ("report", "text", "colour"),
    [
        (judged(True, pass_native=3), "level 2", "#2c7a3f"),
        (judged(False, fail=2, missing=1, pass_native=9), "level 2: 3 rows fail", "#b3261e"),
        (judged(False, expected_fail=4), "level 2: 4 rows fail", "#b3261e"),
        (judged(False), "not conformant", "#b3261e"),
        (judged(False, vendor=True, fail=2), "level 2 (vendor)", "#1f6587"),
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
    content = sample()
    content["rows"][2]["failures"][0] = {
        **content["rows"][2]["failures"][0],
        "message": "\x00\x1b",
    }
    ET.fromstring(junit(content).partition("\n")[2])


def test_the_summary() -> None:
    lines = summary(sample()).splitlines()
    assert lines[0] == "# Conformance of acme: partial run"
    assert "- by the profiles: strict: not certified, vendor: not certified" in lines
    assert "| native | 3 | 1 |  |  |  | 1 |  |" in lines
    row = next(line for line in lines if line.startswith("| Neg float32 native"))
    assert row.endswith(r"got 0.0, must be -0.0 \| and so on |")


def test_every_form_is_written(tmp_path: Path) -> None:
    paths = render(sample(), tmp_path)
    assert sorted(path.name for path in paths) == sorted(FORMS)
    assert all(path.stat().st_size for path in paths)


def whole() -> dict[str, Any]:
    """Return a report with all that a page can show."""
    content = {**sample(), "performance": times(), "partial": False, "conformant": False}
    content["evidence"] = [EVIDENCE]
    content["vendor"] = {"conformant": True, "blocked_by": []}
    content["coverage"] = {"layout x layout": [9, 9], "before x layout": [7, 8]}
    drivers = {"Acme driver": "<1.5>"}
    content["backend"] = {**content["backend"], "flushes": ["float32"], "drivers": drivers}
    assert faults(content) == []
    return content


@pytest.mark.parametrize(
    "text",
    [
        '<p class="verdict">Not conformant at level 3.</p>',  # strict
        '<p class="verdict">Conformant at level 3.</p>',  # vendor
        "taken for 0 in float32",
        "<dt>Acme driver</dt><dd>&lt;1.5&gt;</dd>",
        "<dd>16 of 17 pairs of properties covered</dd>",
        'title="7 of 8 pairs">87.5%<',
        'title="9 of 9 pairs">100%<',
        "tensorplug-conformance==0.1.0 tensorplug-acme==1.2 tensorplug-thirds==2.0\n",
        "run --backend acme --level 3 --seed 0 --again-seed 7 --examples 2 --profile strict",
        "--profile strict --evidence thirds --report out\n",
        "tensorplug-conformance measure --backend acme --report out\n",
        "tensorplug-conformance verify out</pre>",
        "have dtypes that the backend does not declare</dd>",
        "2 kernels slower by decomposition than they could be natively",
        '<td class="number">2 ms</td><td>cpu&#39;s time</td><td class="number">20 ms</td>',
        'title="Lu(x=float32[1000])">Lu 4 s</span>, ',
        "Not timed: Svd (it took more than 60 s).",
        "<li><b>1</b> fail in some dtype</li><li><b>3</b> native</li>",
    ],
)
def test_what_the_page_shows(text: str) -> None:
    assert text in page(whole())


def test_the_page_puts_the_largest_gain_first() -> None:
    text = page(whole()).partition('id="gains"')[2].partition("</table>")[0]
    assert re.findall(r'<th scope="row">(\w+)</th>', text) == ["Erfc", "Gelu"]
    assert "22 ms</td>" in text
    assert "2 ms</td>" in text


def test_a_partial_run_has_no_command_that_repeats_it() -> None:
    assert 'id="repeat"' not in page(sample())


def test_a_lost_row_shows_where_it_crashed_and_how_to_repeat_it() -> None:
    content = sample()
    crashed = "the process died of signal 6\nFatal Python error: Aborted"
    content["rows"][2] |= {"failures": [], "reason": crashed}
    text = page(content).partition('id="failures"')[2].partition("</details>")[0]
    head, _, body = text.partition("</summary>")
    assert head.rstrip().endswith("the process died of signal 6")
    assert "Fatal Python error: Aborted\n" in body
    assert "run --backend acme --level 3 --kernels Neg --dtypes float32 --mode native" in body


def test_a_failure_within_a_vendors_bounds_is_marked() -> None:
    report = sample()
    (neg,) = (row for row in report["rows"] if row["status"] == "fail")
    assert "\u2717</td>" in page(report)
    neg["vendor"] = "pass native"
    text = page(report)
    assert "\u2717</td>" not in text
    assert ">~</td>" in text
    assert "within a vendor&#39;s bounds" in text


def test_tables_can_be_read_aloud() -> None:
    text = page(whole())
    assert text.count("<table") == text.count("<caption>")
    heads = re.findall(r"<thead>.*?</thead>", text, re.DOTALL)
    assert all(re.findall(r"<th(?!ead| scope)", head) == [] for head in heads)
    levels = [int(level) for level in re.findall(r"<h([1-6])", text)]
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_page_is_self_contained_and_escapes() -> None:
    text = page(whole())
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
    rows = view.locator("#matrix tr[data-state]:visible th")
    return [content.strip() for content in rows.all_text_contents()]


def test_the_page_sorts_and_filters(shown: Any) -> None:
    assert names(shown) == ["Abs", "Exp", "Neg", "Tanh"]
    families = shown.locator("#matrix tr.family:visible")
    assert families.all_text_contents() == ["elementwise"]
    shown.locator("#matrix thead button").first.click()
    assert names(shown) == ["Tanh", "Neg", "Exp", "Abs"]
    shown.locator("#filter").fill("e")
    assert names(shown) == ["Neg", "Exp"]
    assert shown.locator("#shown").inner_text() == "2 kernels"
    shown.locator("#filter").fill("zz")
    assert families.count() == 0  # a family without kernels is hidden
    shown.locator("#filter").fill("e")
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
