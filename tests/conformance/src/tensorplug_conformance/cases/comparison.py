"""Cases for comparison and logic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import specs
from tensorplug_conformance.case import Case
from tensorplug_conformance.oracle import comparison as oracle
from tensorplug_conformance.tables import CaseTable
from tensorplug_conformance.variants import patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.corpus import Corpus

    Reference = Callable[..., Array]

cases = CaseTable()


def _ending(plain: Iterable[Case], reference: Reference) -> Iterator[Case]:
    """Yield the cases, the large one with a last result that differs from the one before."""
    for case in plain:
        yield patterns.apart(case, reference) if case.id == "large" else case


for spec, reference in (
    (specs.EQUAL, oracle.equal),
    (specs.NOT_EQUAL, oracle.not_equal),
    (specs.LESS, oracle.less),
    (specs.LESS_EQUAL, oracle.less_equal),
    (specs.GREATER, oracle.greater),
    (specs.GREATER_EQUAL, oracle.greater_equal),
):

    @cases.of(spec, oracle=reference)
    def compared(corpus: Corpus, reference: Reference = reference) -> Iterator[Case]:
        """Small whole numbers, so that equal ones meet often."""
        yield from _ending(patterns.binary(corpus, corpus.small), reference)
        if corpus.dtype in dt.COMPLEX:
            special = corpus.special_parts().reshape(-1)
            yield Case("special parts", (special[:, None], special))


for spec, reference in (
    (specs.LOGICAL_AND, oracle.logical_and),
    (specs.LOGICAL_OR, oracle.logical_or),
    (specs.LOGICAL_XOR, oracle.logical_xor),
):

    @cases.of(spec, oracle=reference)
    def combined(corpus: Corpus, reference: Reference = reference) -> Iterator[Case]:
        yield from _ending(patterns.binary(corpus), reference)


cases.of(specs.LOGICAL_NOT, oracle=oracle.logical_not)(patterns.unary)

for spec, reference in (
    (specs.IS_FINITE, oracle.is_finite),
    (specs.IS_INF, oracle.is_inf),
    (specs.IS_NAN, oracle.is_nan),
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
