"""Cases for the sigmoid-weighted linear unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.ops import sigmoid_linear as ops
from tensorplug_conformance import patterns
from tensorplug_conformance.oracle import sigmoid_linear as oracle
from tensorplug_conformance.tables import Case, CaseTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug_conformance.corpus import Corpus

cases = CaseTable()


@cases.of(ops.SILU, oracle=oracle.silu)
def silu(corpus: Corpus) -> Iterator[Case]:
    """Near 0, and far out, where the power overflows or vanishes before the product does."""
    yield from patterns.unary(corpus)
    yield Case("near 0", (corpus.ordinary((65,)) * corpus.of(2.0**-7),))
    far = [-1000.0, -740, -104, -100, -95, -88, -50, -17, -9.5, 9.5, 50, 100, 1000]
    yield Case("far", (corpus.of(far),))


@cases.gradients(ops.SILU, "x")
def silu_points(corpus: Corpus) -> Iterator[Case]:
    yield from patterns.around(corpus, -3.0, -1.5, -0.5, 0.0, 0.5, 2.0)
    ends = corpus.of([float("-inf"), float("inf")])
    yield Case("infinite", (ends,), expected=(corpus.of([0.0, 1.0]),))
