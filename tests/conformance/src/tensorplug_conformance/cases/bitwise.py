"""Cases for bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle import bitwise as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()

for spec, reference in (
    (specs.BITWISE_AND, oracle.bitwise_and),
    (specs.BITWISE_OR, oracle.bitwise_or),
    (specs.BITWISE_XOR, oracle.bitwise_xor),
):
    cases.of(spec, oracle=reference)(patterns.binary)

cases.of(specs.INVERT, oracle=oracle.invert)(patterns.unary)

for spec, reference in (
    (specs.LEFT_SHIFT, oracle.left_shift),
    (specs.RIGHT_SHIFT, oracle.right_shift),
):

    @cases.of(spec, oracle=reference)
    def shifted(corpus: Corpus) -> Iterator[Case]:
        """Shifts by counts of every kind, including negative and too large ones."""
        yield from patterns.binary(corpus, lambda shape: corpus.small(shape, 7))
        bits = 8 * corpus.dtype.itemsize
        counts = np.array([0, 1, 2, bits // 2, bits - 2, bits - 1, bits, bits + 1, 120])
        yield Case("counts", (corpus.edges()[:, None], corpus.of(counts)))
        if corpus.dtype in dt.SIGNED:
            yield Case("negative counts", (corpus.edges()[:, None], corpus.of([-1, -bits])))
