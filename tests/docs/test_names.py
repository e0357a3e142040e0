"""Every name of the package that the documentation mentions exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tensorplug as tp

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(
    path
    for path in DOCS.rglob("*.md")
    # Decisions tell what was, and generated pages are tested by their own tests.
    if path.parent.name != "adr"
    and path.relative_to(DOCS).parts[:2] != ("reference", "api")
    and path.name not in ("gradients_table.md", "specs.md")
)
_NAME = re.compile(r"(?<![\w./])tp((?:\.[A-Za-z_]\w*)+)")


def missing(text: str) -> list[str]:
    """Return the names below ``tp`` in a text that the package lacks.

    A name may go on with attributes of what it denotes, which only a call would tell.
    """
    found = []
    for chain in set(_NAME.findall(text)):
        value: object = tp
        for name in chain[1:].split("."):
            if not hasattr(value, name):
                found.append(f"tp{chain}")
                break
            value = getattr(value, name)
            if not isinstance(value, type(tp)):
                break
    return sorted(found)


def test_a_missing_name_is_found() -> None:
    text = "`tp.sum(x).tolist()`, `tp.nn.relu`, `tp.nn.telu`, `http.server`, and `tp.summ`."
    assert missing(text) == ["tp.nn.telu", "tp.summ"]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_a_page_names_what_exists(page: Path) -> None:
    assert missing(page.read_text("utf-8")) == []
