"""Cases for comparison and logic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.ops import comparison as ops
from tensorplug_conformance import patterns
from tensorplug_conformance.oracle import comparison as oracle
from tensorplug_conformance.tables import Case, CaseTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tensorplug_conformance.corpus import Corpus
    from tensorplug_conformance.tables import Array

    Reference = Callable[..., Array]

cases = CaseTable()


def _ending(given: Iterable[Case], reference: Reference) -> Iterator[Case]:
    """Yield the cases, the large one with another truth at its end than before."""
    for case in given:
        yield patterns.apart(case, reference) if case.id == "large" else case


for spec, reference in (
    (ops.EQUAL, oracle.equal),
    (ops.NOT_EQUAL, oracle.not_equal),
    (ops.LESS, oracle.less),
    (ops.LESS_EQUAL, oracle.less_equal),
    (ops.GREATER, oracle.greater),
    (ops.GREATER_EQUAL, oracle.greater_equal),
):

    @cases.of(spec, oracle=reference)
    def compared(corpus: Corpus, reference: Reference = reference) -> Iterator[Case]:
        """Small whole numbers, so that equal ones meet often."""
        yield from _ending(patterns.binary(corpus, corpus.small), reference)


for spec, reference in (
    (ops.LOGICAL_AND, oracle.logical_and),
    (ops.LOGICAL_OR, oracle.logical_or),
    (ops.LOGICAL_XOR, oracle.logical_xor),
):

    @cases.of(spec, oracle=reference)
    def combined(corpus: Corpus, reference: Reference = reference) -> Iterator[Case]:
        yield from _ending(patterns.binary(corpus), reference)


cases.of(ops.LOGICAL_NOT, oracle=oracle.logical_not)(patterns.unary)

for spec, reference in (
    (ops.IS_FINITE, oracle.is_finite),
    (ops.IS_INF, oracle.is_inf),
    (ops.IS_NAN, oracle.is_nan),
):

    @cases.of(spec, oracle=reference)
    def classified(corpus: Corpus, reference: Reference = reference) -> Iterator[Case]:
        """Either part of a complex number decides."""
        yield from _ending(patterns.unary(corpus), reference)
        if corpus.dtype in dt.COMPLEX:
            parts = np.array([0.0, -2.5, np.inf, -np.inf, np.nan])
            special = np.empty((5, 5), dtype=corpus.dtype.numpy)
            special.real, special.imag = parts[:, None], parts
            yield Case("special parts", (special,))
