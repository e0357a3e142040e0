"""The expected outputs of a case: its own, or the oracle's, computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug_conformance.case import Relation

if TYPE_CHECKING:
    from tensorplug_conformance.case import Case, Reference
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.denominator import Row


Right = tuple["Reference", ...] | Relation


def worked_out(entry: CaseEntry, case: Case) -> Right:
    """Return the expected outputs of a case, or the relation between them."""
    if isinstance(case.expected, tuple | Relation):
        return case.expected
    answer = entry.answer(case)
    return answer if isinstance(answer, tuple | Relation) else (answer,)


class References:
    """The expected outputs of one kernel and dtype, kept until another one is asked for.

    A kernel's native and decomposed rows have the same cases, and the oracle takes most of the
    time in both. One object serves one seed.
    """

    def __init__(self) -> None:
        self._concerns: tuple[str, str] | None = None
        self._known: dict[str, Right] = {}

    def of(self, entry: CaseEntry, row: Row, case: Case) -> Right:
        """Return the expected outputs of ``case`` in ``row``."""
        if self._concerns != (row.kernel, row.dtype):
            self._concerns = row.kernel, row.dtype
            self._known = {}
        if case.id not in self._known:
            self._known[case.id] = worked_out(entry, case)
        return self._known[case.id]
