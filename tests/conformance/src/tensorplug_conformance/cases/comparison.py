"""Cases for comparison and logic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.ops import comparison as ops
from tensorplug_conformance import patterns
from tensorplug_conformance.oracle import comparison as oracle
from tensorplug_conformance.tables import Case, CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

for spec, reference in (
    (ops.EQUAL, oracle.equal),
    (ops.NOT_EQUAL, oracle.not_equal),
    (ops.LESS, oracle.less),
    (ops.LESS_EQUAL, oracle.less_equal),
    (ops.GREATER, oracle.greater),
    (ops.GREATER_EQUAL, oracle.greater_equal),
):

    @cases.of(spec, oracle=reference)
    def compared(corpus: Corpus) -> Iterator[Case]:
        """Small whole numbers, so that equal ones meet often."""
        yield from patterns.binary(corpus, corpus.small)


for spec, reference in (
    (ops.LOGICAL_AND, oracle.logical_and),
    (ops.LOGICAL_OR, oracle.logical_or),
):
    cases.of(spec, oracle=reference)(patterns.binary)

cases.of(ops.LOGICAL_NOT, oracle=oracle.logical_not)(patterns.unary)
