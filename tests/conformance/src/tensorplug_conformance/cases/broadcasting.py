"""Cases for shapes given as tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.plugin import ShapeError, specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle import broadcasting as oracle
from tensorplug_conformance.tables import CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()


@cases.of(specs.BROADCAST_ARGS, oracle=oracle.broadcast_args)
def broadcast_args(corpus: Corpus) -> Iterator[Case]:
    """Equal ranks, unequal ones, rank 0, sizes of 0; shapes that do not broadcast."""
    for name, s0, s1 in (
        ("ones", [1, 3], [2, 1]),
        ("same", [2, 3], [2, 3]),
        ("longer", [5, 1, 3], [4, 3]),
        ("shorter", [3], [2, 7, 1]),
        ("rank 0", [], [2, 3]),
        ("both rank 0", [], []),
        ("empty", [0, 3], [1, 1]),
        ("empty by one", [1], [0]),
        ("rank 7", [1, 2, 1, 4, 1, 6, 1], [7, 1, 5, 1, 3, 1, 2]),
        ("large", [100, 1], [1, 127]),
    ):
        yield Case(name, (corpus.of(s0), corpus.of(s1)))
    for name, s0, s1 in (("no match", [2, 3], [3, 2]), ("empty and 2", [0], [2])):
        yield Case(name, (corpus.of(s0), corpus.of(s1)), expected=ShapeError)
    yield Case("a matrix", (corpus.of([[1]]), corpus.of([1])), expected=ShapeError)
