"""Names that differ by a slip of the fingers, or by capitals and underscores alone.

A wrong hint is worse than none: only what such a slip can cause counts as a misspelling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable


# Names of at least so many characters may differ by one slip, and by two. Among shorter ones,
# different words differ by as little: cond and conj, tile and file.
_SWAPPED: Final = 3  # two neighbours changed places, which makes no other word: rleu, epx
_ONE_SLIP: Final = 5
_TWO_SLIPS: Final = 9


def plain(name: str) -> str:
    """Return the same name for different spellings: ``argmax`` for ``argMax`` and ``arg_max``."""
    return name.rpartition(".")[2].replace("_", "").lower()


def nearest(name: str, places: Iterable[str]) -> str:
    """Return the place whose name is the least number of slips away, if that is near enough."""
    best, candidate = 3, ""
    for place in places:
        other = plain(place)
        shorter = min(len(name), len(other))
        swapped = shorter >= _SWAPPED and sorted(name) == sorted(other)
        allowed = (swapped or shorter >= _ONE_SLIP) + (shorter >= _TWO_SLIPS)
        if (
            name[0] == other[0]
            and _digits(name) == _digits(other)
            and abs(len(name) - len(other)) <= allowed
        ):
            distance = slips(name, other)
            if distance <= allowed and distance < best:
                best, candidate = distance, place
    return candidate


def _digits(name: str) -> str:
    """Return the digits of a name, which are not slips: logaddexp2 is not logaddexp."""
    return "".join(filter(str.isdecimal, name))


def slips(a: str, b: str) -> int:
    """Return how many characters must be inserted, deleted, replaced or swapped with the next.

    Source: the optimal string alignment distance, G. Navarro, "A guided tour to approximate
    string matching", ACM Computing Surveys 33 (2001), section 2.
    """
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, left in enumerate(a):
        last, before, row = before, row, [i + 1]
        for j, right in enumerate(b):
            cost = min(before[j + 1] + 1, row[j] + 1, before[j] + (left != right))
            if i and j and left == b[j - 1] and a[i - 1] == right:
                cost = min(cost, last[j - 1] + 1)
            row.append(cost)
    return row[-1]
