"""Coverage of pairs on the page: how much of each pair of properties the cases cover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def coverage(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the table of properties by properties, and its sums; None if nothing was counted.

    A cell is None where the two properties have no pairs.
    """
    counted: Mapping[str, tuple[int, int]] = report.get("coverage") or {}
    if not counted:
        return None
    pairs = {tuple(name.split(" x ")): numbers for name, numbers in counted.items()}
    every = sorted({part for pair in pairs for part in pair})
    below: dict[str, dict[str, dict[str, Any] | None]] = {}  # not above: the same, mirrored
    for at, name in enumerate(every):
        cells = {
            other: _cell(pairs.get((name, other)) or pairs.get((other, name)))
            for other in every[: at + 1]
        }
        if any(cells.values()):
            below[name] = cells
    names = [other for other in every if any(cells.get(other) for cells in below.values())]
    lines = [
        {"name": name, "cells": [cells.get(other) for other in names]}
        for name, cells in below.items()
    ]
    covered, possible = (sum(numbers[at] for numbers in counted.values()) for at in (0, 1))
    return {"names": names, "lines": lines, "covered": covered, "possible": possible}


def _cell(numbers: tuple[int, int] | None) -> dict[str, Any] | None:
    if numbers is None or not numbers[1]:
        return None
    covered, possible = numbers
    share = 100 * covered / possible
    return {
        "text": "100%" if covered == possible else f"{min(share, 99.9):.1f}%",
        "title": f"{covered} of {possible} pairs",
        "state": "passed" if covered == possible else "expected",
    }
