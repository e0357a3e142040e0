"""Kinds of mistakes that any kernel may have; every kernel gets those that fit it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug_conformance.selftest.kinds import (
    attributes,
    circumstances,
    keys,
    memory,
    occasions,
    operands,
    results,
    reuse,
    rules,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.selftest.sabotage import Saboteur

__all__ = ["generated"]


def generated(entry: CaseEntry) -> Iterator[Saboteur]:
    """Yield the saboteurs of one kernel, made from its spec and from how its cases judge it."""
    for kinds in (results, occasions, circumstances, keys, operands, memory, reuse):
        for kind in kinds.KINDS:
            yield from kind.saboteurs(entry)
    yield from attributes.saboteurs(entry)
    yield from rules.saboteurs(entry)
