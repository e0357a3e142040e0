"""Plans that cover all pairs of levels of several factors.

Most faults show when two properties meet: a kernel is wrong for large inputs that are strided, or
for a NaN in the second input. To try each pair of levels takes a small part of what all
combinations would take. The plan is made one combination after another, each with those levels
that have the most pairs left (as in D. M. Cohen et al., "The AETG System: An Approach to Testing
Based on Combinatorial Design", IEEE Transactions on Software Engineering 23, 1997).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Offer:
    """What one case can be combined with. Levels are numbers, each of one factor only.

    ``fixed``: the levels of the case itself. ``free``: by factor, the levels to choose from.
    ``covered``: levels of free factors that it meets without any combination of the plan.
    """

    fixed: tuple[int, ...]
    free: tuple[tuple[int, ...], ...]
    covered: tuple[tuple[int, ...], ...] = ()


Chosen = tuple[int, tuple[int, ...]]
"""The position of an offer, and one level for each of its free factors."""


class Pairs:
    """A set of pairs of levels: for each level, the others as bits of a number."""

    def __init__(self, count: int) -> None:
        self.others = [0] * count

    def add(self, level: int, others: int) -> None:
        """Add the pairs of a level with each of ``others``, which are bits."""
        others &= ~self.others[level]
        self.others[level] |= others
        while others:
            lowest = others & -others
            self.others[lowest.bit_length() - 1] |= 1 << level
            others ^= lowest

    def join(self, fixed: Iterable[int], chosen: Sequence[int]) -> None:
        """Add the pairs of a combination in which at least one level was chosen."""
        known = bits(fixed)
        for level in chosen:
            self.add(level, known)
            known |= 1 << level

    def count(self, levels: int, others: int) -> int:
        """Return how many pairs there are of one of ``levels`` with one of ``others``, as bits."""
        rows = (row for at, row in enumerate(self.others) if levels >> at & 1)
        return sum((row & others).bit_count() for row in rows)


def possible(offers: Sequence[Offer]) -> Pairs:
    """Return all pairs that combinations of ``offers`` can cover."""
    levels = (
        level for offer in offers for factor in (offer.fixed, *offer.free) for level in factor
    )
    pairs = Pairs(1 + max(levels, default=-1))
    for offer in offers:
        known = bits(offer.fixed)
        for factor in offer.free:
            for level in factor:
                pairs.add(level, known)
            known |= bits(factor)
    return pairs


@lru_cache(maxsize=256)
def cover(offers: tuple[Offer, ...], *, once: bool = False) -> tuple[Chosen, ...]:
    """Return combinations that cover every possible pair; with ``once``, every level.

    The same offers give the same plan.
    """
    left = _Left(offers, once=once)
    picked: list[Chosen] = []
    active = list(range(len(offers)))
    turn = 0
    while active:
        still = []
        for at in active:
            offer = offers[at]
            for shift in range(len(offer.free)):
                chosen = left.choice(offer, (turn + shift) % len(offer.free))
                if left.take(offer.fixed, chosen):
                    picked.append((at, chosen))
                    still.append(at)
                    break
        active = still
        turn += 1
    return tuple(picked)


class _Left:
    """The pairs that are not covered yet: for each level, the others as bits of a number."""

    def __init__(self, offers: Sequence[Offer], *, once: bool) -> None:
        self._others = possible(offers).others
        self._once = once
        if once:  # each level that can be chosen stands beside itself only
            free = bits(level for o in offers for factor in o.free for level in factor)
            self._others = [1 << at & free for at in range(len(self._others))]
        for offer in offers:
            for chosen in offer.covered:
                self.take(offer.fixed, chosen)

    def choice(self, offer: Offer, first: int) -> tuple[int, ...]:
        """Return a level for each free factor; that of number ``first`` is chosen first."""
        count = len(offer.free)
        known = bits(offer.fixed)
        ahead = [bits(levels) for levels in offer.free]
        items = [0] * count
        for step in range(count):
            at = (first + step) % count
            ahead[at] = 0
            rest = 0
            for levels in ahead:
                rest |= levels
            items[at] = self._best(offer.free[at], known, rest)
            known |= 1 << items[at]
        return tuple(items)

    def _best(self, levels: Sequence[int], known: int, rest: int) -> int:
        """Return the level with the most pairs left: with known levels, then with the rest."""
        best, most = levels[0], -1
        for level in levels:
            others = self._others[level]
            now = others & ((known | 1 << level) if self._once else known)
            score = (now.bit_count() << 10) + (others & rest).bit_count()
            if score > most:
                best, most = level, score
        return best

    def take(self, fixed: Sequence[int], chosen: Sequence[int]) -> bool:
        """Strike out the pairs of a combination; return whether there was any."""
        around = bits(fixed) | bits(chosen)
        struck = False
        for level in chosen:
            others = self._others[level] & around
            if others:
                struck = True
                self._others[level] ^= others
                for other in fixed:
                    self._others[other] &= ~(1 << level)
        # Pairs of two chosen levels were struck from both sides, each in its own turn.
        return struck


def bits(levels: Iterable[int]) -> int:
    """Return a number whose bits say which levels there are."""
    mask = 0
    for level in levels:
        mask |= 1 << level
    return mask
