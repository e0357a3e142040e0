"""Aligns the calls of two runs of one program."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_conformance.differential.calls import Call


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which calls of two runs are the same call of the program.

    ``partners``: by the number of a call of the first run, that of the second. ``parted``: the
    first calls that have no partner, where the program went two ways; None where a run ended.
    """

    partners: dict[int, Call]
    parted: tuple[Call | None, Call | None] | None


def align(ours: Sequence[Call], theirs: Sequence[Call]) -> Alignment:
    """Align calls by kernel, types and attributes.

    Where the runs part, because a branch depends on data or because one has more casts, they are
    aligned again where they go on alike.
    """
    same = _common(ours, theirs)
    pairs = list(zip(ours[:same], theirs[:same], strict=True))
    parted = None
    if same < max(len(ours), len(theirs)):
        parted = (
            ours[same] if same < len(ours) else None,
            theirs[same] if same < len(theirs) else None,
        )
        rest = ours[same:], theirs[same:]
        one, other = ([call.signature for call in calls] for calls in rest)
        matcher = SequenceMatcher(None, one, other, autojunk=False)
        for at, to, size in matcher.get_matching_blocks():
            pairs += zip(rest[0][at : at + size], rest[1][to : to + size], strict=True)
    return Alignment({one.number: other for one, other in pairs}, parted)


def _common(ours: Sequence[Call], theirs: Sequence[Call]) -> int:
    """Return how many calls the runs have in common at their beginning."""
    for at, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if one.signature != other.signature:
            return at
    return min(len(ours), len(theirs))
