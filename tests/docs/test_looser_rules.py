"""The page's table of looser rules names the kernels that have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorplug_conformance.denominator import entries
from tensorplug_conformance.extensions import extension_tables

KNOWN = entries(extension_tables())
PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"


def listed(rule: str) -> set[str]:
    """Return the names in the rows of a rule: the one that begins with it, and those below."""
    section = PAGE.read_text(encoding="utf-8").partition("\n## Looser rules\n")[2]
    rows = [line.split("|")[1:3] for line in section.partition("\n## ")[0].splitlines() if line]
    found: set[str] = set()
    inside = False
    for cells in rows:
        if len(cells) == 2:
            first, kernels = (cell.strip() for cell in cells)
            inside = first.startswith(rule) or (inside and not first)
            found |= set(kernels.split(", ")) if inside else set()
    return found


def test_kernels_without_gradients_far_from_0_are_listed() -> None:
    assert listed("no gradients far") == {name for name, entry in KNOWN.items() if entry.near_only}


@pytest.mark.parametrize(
    ("rule", "size"),
    [
        ("gradients off", 1),
        ("the same, terms of size 1/4", 0.25),
        ("the same, terms of size 16", 16),
    ],
)
def test_kernels_whose_terms_cancel_are_listed(rule: str, size: float) -> None:
    assert listed(rule) == {name for name, entry in KNOWN.items() if entry.cancelled == size}


def test_no_other_size_of_terms_is_allowed() -> None:
    sizes = {entry.cancelled for entry in KNOWN.values()}
    assert sizes == {0, 0.25, 1, 16}
