"""No page of the built site hides columns, output or names; ``make browser`` builds it first."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "out" / "site"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))

# What a screen reader alone shows is hidden on purpose.
WIDER_THAN_ITS_PLACE = """() => [...document.querySelectorAll("html, .bd-main *")]
    .filter(each => each.clientWidth && each.scrollWidth > each.clientWidth + 1
        && !each.matches(".visually-hidden"))
    .map(each => [each.tagName.toLowerCase(), each.matches(".columns pre"), each.innerText])
"""


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None or not PAGES:
        pytest.skip("no Chromium here, or no site in out/site")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


def wider(page):
    return page.evaluate(WIDER_THAN_ITS_PLACE)


@pytest.mark.parametrize("width", [1280, 390])
def test_what_is_wider_than_its_place_is_found(browser, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.set_content(f"<div class=bd-main><p style='width:{width + 99}px'>text</p></div>")
    assert "html" in {tag for tag, _, _ in wider(page)}


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_cut(browser, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    found = []
    for name in PAGES:
        page.goto((SITE / name).as_uri())
        for tag, scrolls, text in wider(page):
            if width == 1280 or not scrolls:  # columns of text may scroll on a narrow screen
                found.append(f"{name}: <{tag}> {text[:40]!r}")
    assert len(PAGES) > 100
    assert found == []
