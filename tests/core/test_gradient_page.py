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
    text = gradient_page.PAGE.read_text(encoding="utf-8")
    assert len(re.findall(r"^\| [\w ]*\| `", text, re.MULTILINE)) == len(RULES)


def test_no_rule_is_untested() -> None:
    assert "nowhere" not in gradient_page.page()


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)]+)", gradient_page.page()))))
def test_its_links_lead_somewhere(link: str) -> None:
    assert (gradient_page.PAGE.parent / link).is_file()
