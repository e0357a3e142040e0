"""Cases that every kernel needs, derived from its own where its family has none such."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug_conformance.tables import Array, Case

__all__ = ["derived"]

_SMALL = 4096


def derived(cases: Sequence[Case]) -> Iterator[Case]:
    """Yield what ``cases`` lack: inputs that do not lie densely on the device."""
    if all(case.layout == "dense" for case in cases):
        yield from _laid_out(cases)


def _laid_out(cases: Sequence[Case]) -> Iterator[Case]:
    fitting = [case for case in cases if _has_rows(case)]
    if fitting:
        first = fitting[0]
        yield replace(first, id=f"{first.id}, sliced", layout="sliced")
        if any(rank > 1 for rank in _ranks(first)):
            yield replace(first, id=f"{first.id}, transposed", layout="transposed")


def _has_rows(case: Case) -> bool:
    """Return whether it is answered, and an input of it has elements that can lie apart."""
    if isinstance(case.expected, type):
        return False
    arrays = _arrays(case)
    # Of two elements or one column, other strides make no difference.
    return any(each.size > 2 for each in arrays) and all(
        0 < each.size <= _SMALL and each.dtype.kind != "T" for each in arrays
    )


def _ranks(case: Case) -> list[int]:
    return [each.ndim for each in _arrays(case)]


def _arrays(case: Case) -> list[Array]:
    found: list[Array] = []
    for each in case.inputs:
        found.extend(each if isinstance(each, list) else [] if each is None else [each])
    return found
