"""The generated page of gradient rules says what the rules and their points say now."""

from __future__ import annotations

import re

import pytest

from . import gradient_page
from .gradient_points import RULES


def test_the_page_is_up_to_date() -> None:
    hint = "run make docs"
    assert gradient_page.PAGE.read_text(encoding="utf-8") == gradient_page.page(), hint


def test_every_input_has_a_row() -> None:
    assert not gradient_page.without_entry()
    text = gradient_page.PAGE.read_text(encoding="utf-8")
    assert len(re.findall(r"^\| [\w ]*\| `", text, re.MULTILINE)) == len(RULES)


def test_no_rule_is_untested() -> None:
    assert "nowhere" not in gradient_page.page()


def test_its_links_lead_somewhere() -> None:
    links = sorted(set(re.findall(r"\]\(([^)]+)", gradient_page.page())))
    assert not [link for link in links if not (gradient_page.PAGE.parent / link).is_file()]


def test_an_op_without_an_entry_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(RULES, ("Tanh", "x"))
    with pytest.raises(LookupError, match=r"no gradient rule and no stop for Tanh\(x\)"):
        gradient_page.page()
