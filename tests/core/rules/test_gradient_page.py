"""The generated page of gradient rules says what the rules and their points say now."""

from __future__ import annotations

import re
from pathlib import Path

import gradient_page
import pytest

DOCS = Path(__file__).parents[3] / "docs"


def test_every_input_has_a_row() -> None:
    assert not gradient_page.without_entry()
    text = gradient_page.page()
    assert len(re.findall(r"^\| [\w ]*\| `", text, re.MULTILINE)) == len(gradient_page.RULES)


def test_no_rule_is_untested() -> None:
    assert "nowhere" not in gradient_page.page()


def test_its_links_lead_somewhere() -> None:
    links = sorted(set(re.findall(r"\]\(([^)]+)", gradient_page.page())))
    assert not [link for link in links if not (DOCS / link).is_file()]


def test_an_op_without_an_entry_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(gradient_page.RULES, ("Tanh", "x"))
    with pytest.raises(LookupError, match=r"no gradient rule and no stop for Tanh\(x\)"):
        gradient_page.page()
